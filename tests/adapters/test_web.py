"""The page is served to browsers on this machine, and to nobody else."""

import http.client
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.web import serve_folder
from swarm_tui.errors import AdapterError
from tests.programs import end_with_parent
from tests.waiting import PATIENCE


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server in a process of its own, ended as a person would: by ctrl+c."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<p>the page</p>")
    (folder / "data").mkdir()
    (folder / "data/a.js").write_text("1")
    (folder / "long").write_bytes(bytes(50_000_000))
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    code = (
        "import sys; from pathlib import Path; from swarm_tui.adapters.web import serve_folder;"
        "serve_folder(Path(sys.argv[1]), 0, lambda address: print(address, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    yield int(address.rstrip("/").rpartition(":")[2])
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1] == "stopped\n"
    assert process.returncode == 0


def ask(port: int, path: str, host: str = "", method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    told = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return told


def test_page_and_its_files_are_served(port: int) -> None:
    status, body, headers = ask(port, "/")
    assert (status, body) == (200, b"<p>the page</p>")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert ask(port, "/data/a.js")[:2] == (200, b"1")
    assert ask(port, "/data/a.js", method="HEAD")[:2] == (200, b"")


@pytest.mark.parametrize(
    "path", ["/data/", "/data", "/missing", "/link.txt", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"]
)
def test_nothing_else_is_served(port: int, path: str) -> None:
    status, body, _ = ask(port, path)
    assert status == 404
    assert b"secret" not in body.replace(b"secret.txt", b"")


def test_nothing_can_be_changed(port: int) -> None:
    assert ask(port, "/", method="POST")[0] == 501
    assert ask(port, "/", method="DELETE")[0] == 501


def test_other_domain_name_gets_no_page(port: int) -> None:
    assert ask(port, "/", host=f"evil.example:{port}")[0] == 403
    assert ask(port, "/", host=f"localhost:{port}")[0] == 200


def test_only_loopback_listens(port: int) -> None:
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", port)) != 0


def test_used_port_is_reported(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AdapterError, match="cannot serve on"):
            serve_folder(tmp_path, taken.getsockname()[1], lambda address: None)
    with pytest.raises(AdapterError, match="cannot serve on"):
        serve_folder(tmp_path, 99_999, lambda address: None)


def test_many_browsers_at_once(port: int) -> None:
    found: queue.Queue[int] = queue.Queue()
    threads = [threading.Thread(target=lambda: found.put(ask(port, "/")[0])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [found.get_nowait() for _ in threads] == [200] * 20


def test_disconnected_browser_is_not_reported(port: int) -> None:
    """A traceback was printed for each; the fixture looks at what is said."""
    for words in (b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /lo", b""):
        with socket.create_connection(("127.0.0.1", port)) as browser:
            browser.sendall(words)
            if words.endswith(b"\n"):
                assert browser.recv(10) == b"HTTP/1.1 2"
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert ask(port, "/")[0] == 200
