"""Ways to damage a folder: bytes, lines, values and files, and other things in the place of files."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1 << 63, 1e308, float("nan"), "", "../../../out", "-rf", "\x1b[2J", "x" * 10_000, "\ud800", [],
    {}, [[[[]]]], {"a": {"b": {}}}, "/etc/passwd",
    "/dev/zero", "$(touch out)", "a\nb", ["x"], "swarm-x", "--upload-pack=x",
)  # fmt: skip
LINES: Final = (
    b"garbage", b"\x00" * 300, b"[" * 100_000, b'{"a":' * 100_000, b"{}", b"[]", b"null", b'"', b"\xff\xfe", b" ",
    b'{"type":"pulled","test":"x","result":"impl_fix"}', b'{"type":"engine_ended","why":"finished"}',
    b'{"seq":1,"type":"queued","test":"forged","agent":"../../out"}', b'{"kind":"stop","id":"1","at":1}',
)  # fmt: skip
SPARSE_SIZE: Final = 1 << 30
DEVICE: Final = os.makedev(1, 5)
"""/dev/zero, which has no end."""

Damage = Callable[[Path, random.Random, Path], None]


def flip(path: Path, dice: random.Random, secret: Path) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 1, 3, 100))):
        if content:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def cut(path: Path, dice: random.Random, secret: Path) -> None:
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def empty(path: Path, dice: random.Random, secret: Path) -> None:
    path.write_bytes(b"")


def delete(path: Path, dice: random.Random, secret: Path) -> None:
    path.unlink()


def change_lines(path: Path, dice: random.Random, secret: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    for _ in range(dice.choice((1, 1, 2, 5))):
        place = dice.randrange(len(lines))
        match dice.choice(("delete", "double", "swap", "insert", "replace")):
            case "delete":
                del lines[place]
            case "double":
                lines.insert(dice.randrange(len(lines) + 1), lines[place])
            case "swap":
                other = dice.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
            case "insert":
                lines.insert(place, dice.choice(LINES))
            case _:
                lines[place] = dice.choice(LINES)
        lines = lines or [b""]
    path.write_bytes(b"\n".join(lines))


def change_value(path: Path, dice: random.Random, secret: Path) -> None:
    """Put another value into a JSON document, or into one line of many."""
    raw = path.read_bytes()
    lines = raw.split(b"\n") if path.suffix == ".jsonl" or path.name == "snapshot.json" else [raw]
    place = dice.randrange(len(lines))
    try:
        content = json.loads(lines[place])
    except (ValueError, RecursionError):
        flip(path, dice, secret)
        return
    lines[place] = json.dumps(_with_another(content, dice)).encode()
    path.write_bytes(b"\n".join(lines))


def _with_another(content: Any, dice: random.Random) -> Any:
    if isinstance(content, dict) and content and dice.random() < 0.9:
        key = dice.choice(list(content))
        if dice.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        return content | {key: _with_another(content[key], dice)}
    if isinstance(content, list) and content and dice.random() < 0.8:
        place = dice.randrange(len(content))
        return [*content[:place], _with_another(content[place], dice), *content[place + 1 :]]
    return dice.choice(VALUES)


def enlarge(path: Path, dice: random.Random, secret: Path) -> None:
    os.truncate(path, SPARSE_SIZE)


def pipe(path: Path, dice: random.Random, secret: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, dice: random.Random, secret: Path) -> None:
    path.unlink()
    path.mkdir()


def device(path: Path, dice: random.Random, secret: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, DEVICE)
    except OSError:
        path.symlink_to("/dev/zero")


def link(path: Path, dice: random.Random, secret: Path) -> None:
    path.unlink()
    path.symlink_to(dice.choice((str(secret), str(path), "/dev/zero", "..", str(path.parent))))


def cut_off_folder(path: Path, dice: random.Random, secret: Path) -> None:
    """Put something else in the place of the folder that the file lies in."""
    place = path.parent
    if place.parent.name == "runs":
        delete(path, dice, secret)
        return
    shutil.rmtree(place)
    match dice.choice(("file", "link", "pipe", "nothing")):
        case "file":
            place.write_text("no folder\n")
        case "link":
            place.symlink_to(secret.parent)
        case "pipe":
            os.mkfifo(place)


WAYS: Final[tuple[Damage, ...]] = (
    flip, flip, cut, empty, delete, change_lines, change_lines, change_value, change_value, change_value, enlarge,
    pipe, folder, device, link, cut_off_folder,
)  # fmt: skip
IMPORTANT: Final = ("events.jsonl", "sweep.json", "snapshot.json", "requests.jsonl", "verdicts.jsonl", "engine.lock")


def damage(root: Path, dice: random.Random, secret: Path) -> list[tuple[str, str]]:
    """Damage some files below a folder; return the file and the way of each."""
    done = []
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        important = [path for path in files if path.name in IMPORTANT]
        if not files:
            break
        path = dice.choice(important if important and dice.random() < 0.7 else files)
        if path.stat().st_size >= SPARSE_SIZE:
            continue
        way = dice.choice(WAYS)
        way(path, dice, secret)
        done.append((path.relative_to(root).as_posix(), way.__name__))
    return done
