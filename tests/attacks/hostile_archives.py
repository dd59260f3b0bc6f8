"""Archives that hostile agents hand in: what they hold stays in their folder, and is bounded."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.sweep.pull import SIZE_LIMIT, BadArchive, unpack_archive
from tests.attacks.tricks import Trick

NAMES: Final = (
    "../out", "/tmp/swarm-out", "test_output/../../out", "test_output/x", "test_output/./y", "branch.bundle",
    "test_output/" + "n" * 300, "test_output/a/b/c/d", "test_output", "C:\\out", "test_output/\x1b[31m", "-rf",
    "test_output/sub/../../../out", "other/file", "", ".", "test_output/x/below-a-file",
)  # fmt: skip
KINDS: Final = (
    tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
    tarfile.BLKTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE,
)  # fmt: skip
TARGETS: Final = ("/etc/passwd", "..", "../..", "test_output/x", "/", "x")


def sparse_headers(name: str, dice: random.Random) -> dict[str, str]:
    """Return the headers of a sparse file, which may declare any size."""
    size = dice.choice((1, 4096, SIZE_LIMIT + 1, 1 << 40, -1))
    holes = dice.choice(("0,0", f"{size},0", "0,1", "1,-1", "x"))
    return {"GNU.sparse.name": name, "GNU.sparse.size": str(size), "GNU.sparse.map": holes}


def make_archive(path: Path, dice: random.Random) -> None:
    """Write an archive of members that fall from the dice; some are damaged afterwards."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        for _ in range(dice.randint(1, 12)):
            member = tarfile.TarInfo(dice.choice(NAMES))
            member.type = dice.choice(KINDS)
            member.linkname = dice.choice(TARGETS)
            member.mode = dice.choice((0, 0o644, 0o4777))
            content = dice.randbytes(dice.choice((0, 5, 4000))) if member.isreg() else b""
            member.size = len(content)
            if dice.random() < 0.1:
                member.pax_headers = sparse_headers(member.name, dice)
            packed.addfile(member, io.BytesIO(content))
        if dice.random() < 0.1:
            bomb = tarfile.TarInfo("test_output/zeros")
            bomb.size = SIZE_LIMIT + 1
            packed.addfile(bomb, io.BytesIO(bytes(bomb.size)))
    raw = bytearray(buffer.getvalue())
    for _ in range(dice.choice((0, 0, 1, 5))):
        raw[dice.randrange(len(raw))] = dice.randrange(256)
    path.write_bytes(raw[: dice.choice((len(raw), len(raw), dice.randrange(len(raw) + 1)))])


def leads_nowhere(root: Path, dice: random.Random) -> Iterator[str]:
    """Unpack a hostile archive; return what came to lie outside its folder, or is no plain file in it."""
    target = root / "inside" / "target"
    target.mkdir(parents=True)
    make_archive(root / "archive", dice)
    try:
        unpack_archive(root / "archive", target)
    except BadArchive as error:
        if len(str(error)) > 1000:
            yield "the reason is longer than anybody reads"
    outside = {path for path in root.rglob("*") if target not in path.parents}
    for path in outside - {root / "archive", root / "inside", target}:
        yield f"{path} was written"
    size = 0
    for path in target.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield f"{path} is no file"
        size += path.lstat().st_size if path.is_file() else 0
    if size > SIZE_LIMIT:
        yield f"{size} bytes were unpacked"


TRICKS: Final = (Trick("archive", "what an agent hands in stays in its folder, and is bounded", leads_nowhere),)
