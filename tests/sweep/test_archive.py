"""Archives come from agents: whatever is in them, nothing lands outside its folder and nothing runs over."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.sweep.pull import SIZE_LIMIT, BadArchive, unpack_archive


def pack(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as packed:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                packed.addfile(member)
            else:
                entry = tarfile.TarInfo(member[0])
                entry.size = len(member[1])
                packed.addfile(entry, io.BytesIO(member[1]))
    return path


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    return entry


def test_files_and_folders_come_out(tmp_path: Path) -> None:
    archive = pack(
        tmp_path / "a", ("test_output/e2e/x.txt", b"one"), ("branch.bundle", b"two"), ("./test_output/y", b"3")
    )
    target = tmp_path / "out"
    target.mkdir()
    unpacked = unpack_archive(archive, target)
    assert set(unpacked.files) == {"test_output/e2e/x.txt", "branch.bundle", "test_output/y"}
    assert (target / "test_output/e2e/x.txt").read_bytes() == b"one"
    assert unpacked.refused == ()


@pytest.mark.parametrize(
    "member",
    [
        ("/tmp/absolute", b""),
        ("../outside", b""),
        ("test_output/../../outside", b""),
        ("elsewhere/x", b""),
        ("branch.bundle/x", b""),
        ("test_output/" + "n" * 250, b""),
        special("test_output/link", tarfile.SYMTYPE, "/etc/passwd"),
        special("test_output/hard", tarfile.LNKTYPE, "/etc/passwd"),
        special("test_output/pipe", tarfile.FIFOTYPE),
        special("test_output/device", tarfile.CHRTYPE),
    ],
)
def test_harmful_member_is_ignored_and_listed(tmp_path: Path, member: tuple[str, bytes] | tarfile.TarInfo) -> None:
    target = tmp_path / "deep" / "out"
    target.mkdir(parents=True)
    unpacked = unpack_archive(pack(tmp_path / "a", member, ("test_output/good", b"x")), target)
    assert len(unpacked.refused) == 1
    assert unpacked.files == ("test_output/good",)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        "a",
        "deep/out/test_output/good",
    ]


def sparse(size: int) -> tarfile.TarInfo:
    """Return a file of that size without content, as PAX declares it."""
    entry = tarfile.TarInfo("test_output/holes")
    entry.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.name": entry.name,
        "GNU.sparse.size": str(size),
        "GNU.sparse.numblocks": "0",
        "GNU.sparse.map": "0,0",
    }
    return entry


@pytest.mark.parametrize("size", [0, 4_096, SIZE_LIMIT, 1 << 40])
def test_sparse_member_is_ignored_and_listed(tmp_path: Path, size: int) -> None:
    target = tmp_path / "out"
    target.mkdir()
    archive = pack(tmp_path / "a", sparse(size), ("test_output/good", b"x"))
    assert archive.stat().st_size < 1_000
    unpacked = unpack_archive(archive, target)
    assert (unpacked.refused, unpacked.files) == (("test_output/holes",), ("test_output/good",))
    assert not (target / "test_output/holes").exists()


def cut_sparse_header(path: Path) -> None:
    """Write an old sparse member whose header says that it goes on, and end there."""
    header = bytearray(special("test_output/holes", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[482], header[148:156] = 1, b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(gzip.compress(bytes(header)))


def bomb(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        entry = tarfile.TarInfo("test_output/zeros")
        entry.size = SIZE_LIMIT + 1_000_000
        file.write(entry.tobuf())
        for _ in range(entry.size // 1_000_000):
            file.write(bytes(1_000_000))


def many(path: Path) -> None:
    pack(path, *[(f"test_output/{number}", b"") for number in range(5_001)])


def torn(path: Path) -> None:
    pack(path, ("test_output/x", b"x" * 100_000))
    path.write_bytes(path.read_bytes()[:60])


def twice(path: Path) -> None:
    pack(path, ("test_output/x", b"1"), ("test_output/x", b"2"))


@pytest.mark.parametrize(
    "spoil", [bomb, many, torn, twice, cut_sparse_header, lambda path: path.write_bytes(b"no archive")]
)
def test_broken_or_endless_archive_is_rejected(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path / "a")
    target = tmp_path / "out"
    target.mkdir()
    with pytest.raises(BadArchive):
        unpack_archive(tmp_path / "a", target)


@given(content=st.binary(max_size=2_000))
def test_any_bytes_unpack_or_are_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "a").write_bytes(gzip.compress(content, 1))
    (folder / "out").mkdir()
    with suppress(BadArchive):
        unpack_archive(folder / "a", folder / "out")
    assert {path.name for path in folder.iterdir()} == {"a", "out"}
