"""A private Docker daemon without a registry: its own socket, data and bridge, and an image made by debootstrap.

It changes no firewall rules and forwards nothing, so containers have no network. The image has what mngr's default
Dockerfile installs, and Debian's packages of Python as files: `apt-get install python3` works, and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tests.leftovers import MARK, ROOT
from tests.programs import cleaned_up, require_program, skip_without_program
from tests.waiting import until

SUITE: Final = "bookworm"
IMAGE: Final = f"debian:{SUITE}-slim"
"""The name from which mngr's default Dockerfile and that of swarm-tui begin."""
STATE_IMAGE: Final = "alpine:latest"
"""The image of the container in which mngr keeps the state of its hosts. It needs a shell and tail."""
INCLUDED: Final = "ca-certificates,curl,git,jq,openssh-server,rsync,tmux,util-linux,xxd"
OFFERED: Final = ("procps", "python3", "python3-pytest", "python3-venv")
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 60.0
BUILD_SECONDS: Final = 270.0

# Containers reach no archive, so the packages are in the image.
_OFFER_PACKAGES: Final = """
set -e
apt-get -q update
apt-get -q install -y --no-install-recommends --download-only "$@"
mkdir /packages
mv /var/cache/apt/archives/*.deb /packages
cd /packages
for deb in *.deb; do
  dpkg-deb -f "$deb"
  echo "Filename: ./$deb"
  echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d ' ' -f 1)"
  echo
done >Packages
rm -rf /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/packages ./' >/etc/apt/sources.list
"""


def cache_folder() -> Path:
    """Return the folder of what is made once and kept between runs."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "swarm-tui" / "tests" / f"docker-{SUITE}"


@contextlib.contextmanager
def locked_cache() -> Iterator[Path]:
    """Return the folder while no other test worker uses it."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def image_file() -> Path:
    """Return the content of the image as a tar file, made at the first call."""
    with locked_cache() as folder:
        recipe = hashlib.sha256(f"{INCLUDED} {OFFERED} {_OFFER_PACKAGES}".encode()).hexdigest()[:12]
        made = folder / f"image-{recipe}.tar"
        if not made.exists():
            for old in folder.glob("image-*"):
                old.unlink()
            with tempfile.TemporaryDirectory(dir=folder, prefix="root") as root:
                _make_root(Path(root))
                draft = made.with_suffix(".draft")
                _make(["tar", "-C", root, "-cf", str(draft), "."])
                draft.rename(made)
        return made


def _make_root(root: Path) -> None:
    # The folder becomes `/`, which all users must be able to enter.
    root.chmod(0o755)
    _make([require_program("debootstrap"), "--variant=minbase", f"--include={INCLUDED}", SUITE, str(root)])
    _make(["chroot", str(root), "sh", "-c", _OFFER_PACKAGES, "offer", *OFFERED])
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)


def _make(words: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_SECONDS, env=environment
    )
    if done.returncode != 0:
        skip_without_program("debootstrap", f"{words[0]} failed: {(done.stderr or done.stdout).strip()[-300:]}")


def mngr_with_docker() -> str:
    """Return the path of a mngr with the docker plugin, installed by `doctor --fix` at the first call."""
    with locked_cache() as folder:
        environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
        private = folder / "swarm-tui" / "mngr"
        if not list(private.glob("lib/python*/site-packages/imbue/mngr_docker")):
            words = [sys.executable, "-m", "swarm_tui", "doctor", "--fix", "--provider", "docker"]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
            assert list(private.glob("lib/python*/site-packages/imbue/mngr_docker")), done.stdout + done.stderr
        return str(private / "bin" / "mngr")


@dataclass(frozen=True)
class DockerDaemon:
    """A daemon that can be stopped and started."""

    folder: Path

    @property
    def address(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    @property
    def bridge(self) -> str:
        return f"swd{hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]}"

    def docker(self, *words: str) -> str:
        """Run a docker command, and return its output."""
        environment = {**os.environ, "DOCKER_HOST": self.address}
        done = subprocess.run(
            ["docker", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start the daemon, and wait until it answers; skip the test if it cannot run on this machine."""
        log = self.folder / "dockerd.log"
        with log.open("ab") as output:
            daemon = subprocess.Popen(
                list(self._words()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_unmarked(),
                start_new_session=True,
            )
        (self.folder / "pid").write_text(str(daemon.pid))

        def answers() -> bool:
            environment = {**os.environ, "DOCKER_HOST": self.address}
            asked = subprocess.run(["docker", "version"], capture_output=True, env=environment, timeout=START_SECONDS)
            return asked.returncode == 0 or daemon.poll() is not None

        try:
            until(answers, "dockerd to answer", seconds=START_SECONDS)
        except AssertionError:
            daemon.kill()
            daemon.wait()
        if daemon.poll() is not None:
            self._skip()

    def _skip(self) -> NoReturn:
        lines = (self.folder / "dockerd.log").read_text(errors="replace").strip().splitlines()
        skip_without_program("dockerd", f"it does not run here: {lines[-1][-300:] if lines else 'no output'}")

    def _words(self) -> Iterator[str]:
        (self.folder / "daemon.json").write_text("{}")
        yield from (require_program("dockerd"), "--config-file", str(self.folder / "daemon.json"))
        yield from ("--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec"))
        yield from ("--pidfile", str(self.folder / "dockerd.pid"), "--host", self.address, "--bridge", self.bridge)
        # Ports are published by docker-proxy, on 127.0.0.1, which needs neither rules nor forwarding.
        yield from ("--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")
        yield from ("--containerd-namespace", self.bridge, "--containerd-plugins-namespace", f"{self.bridge}-plugins")

    def stop(self) -> None:
        """End the daemon as at a reboot: its containers are stopped, and do not start again."""
        stop_process(self.folder / "pid")

    def left(self) -> list[str]:
        """Return the containers, images and volumes of mngr that are not the state that mngr keeps."""
        found = [f"container {line}" for line in self.docker("ps", "-a", "--format", "{{.Names}}").split()]
        found += [f"image {line}" for line in self.docker("images", "--format", "{{.Repository}}").split()]
        found += [f"volume {line}" for line in self.docker("volume", "ls", "--format", "{{.Name}}").split()]
        return sorted(one for one in found if "mngr-" in one and "mngr-docker-state-" not in one)


def stop_process(file: Path) -> None:
    """Terminate the process of a file, kill it after a minute, and wait until it is gone."""
    try:
        process_id = int(file.read_text())
        os.kill(process_id, signal.SIGTERM)
    except (OSError, ValueError):
        return

    def is_gone() -> bool:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process_id, os.WNOHANG)
        # Its parent may be waiting for us before it reaps the process, which is a zombie until then.
        try:
            return ") Z " in Path(f"/proc/{process_id}/stat").read_text()
        except OSError:
            return True

    try:
        until(is_gone, "the end of dockerd", seconds=STOP_SECONDS)
    except AssertionError:
        os.kill(process_id, signal.SIGKILL)
        until(is_gone, "the end of dockerd")


def _unmarked() -> dict[str, str]:
    """Return an environment that `tests.leftovers` does not recognise: the daemon is ended after its containers."""
    return {name: value for name, value in os.environ.items() if name != MARK}


@contextlib.contextmanager
def private_daemon() -> Iterator[DockerDaemon]:
    """Return a running daemon with the images that mngr begins from; it is gone afterwards, even after `kill -9`."""
    if os.geteuid() != 0:
        skip_without_program("dockerd", "it runs only as root")
    archive = image_file()
    # A socket's path has at most 107 bytes.
    daemon = DockerDaemon(Path(tempfile.mkdtemp(dir="/tmp", prefix="swd")))
    end = [sys.executable, "-m", "tests.docker.daemon", str(daemon.folder)]
    in_root = ["sh", "-c", f"cd {shlex.quote(str(ROOT))} && exec {shlex.join(end)}"]
    with cleaned_up(in_root, environment=_unmarked()):
        for words in (["link", "add", daemon.bridge, "type", "bridge"], ["link", "set", daemon.bridge, "up"]):
            _ip(*words)
        _ip("addr", "add", f"172.29.{os.getpid() % 256}.1/24", "dev", daemon.bridge)
        daemon.start()
        daemon.docker("import", str(archive), IMAGE)
        daemon.docker("tag", IMAGE, STATE_IMAGE)
        yield daemon


def _ip(*words: str) -> None:
    done = subprocess.run([require_program("ip"), *words], capture_output=True, text=True)
    if done.returncode != 0:
        skip_without_program("dockerd", f"this machine has no bridge for it: {done.stderr.strip()}")


def tear_down(folder: Path) -> None:
    """Stop the daemon of a folder, and remove its containers, its bridge and its files."""
    daemon = DockerDaemon(folder)
    daemon.stop()
    subprocess.run(["ip", "link", "delete", daemon.bridge], capture_output=True)
    for mounted in Path("/proc/self/mounts").read_text().splitlines():
        path = mounted.split()[1]
        if path.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", path], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    tear_down(Path(sys.argv[1]))
