"""What a key that Textual has read was on the wire: the bytes that a program in a terminal expects for it."""

from __future__ import annotations

from typing import Final

_PLAIN: Final = {
    "enter": b"\r",
    "tab": b"\t",
    "escape": b"\x1b",
    "backspace": b"\x7f",
    "space": b" ",
    "shift+tab": b"\x1b[Z",
    "ctrl+space": b"\x00",
    "ctrl+at": b"\x00",
    "ctrl+underscore": b"\x1f",
    "ctrl+right_square_bracket": b"\x1d",
    "ctrl+circumflex_accent": b"\x1e",
    "ctrl+backspace": b"\x08",
    "alt+backspace": b"\x1b\x7f",
    "alt+enter": b"\x1b\r",
}
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDE: Final = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20,
                 "f10": 21, "f11": 23, "f12": 24}  # fmt: skip
_FUNCTION: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}


def bytes_of_key(key: str, character: str | None, *, has_application_cursor: bool = False) -> bytes:
    """Return the bytes of a key; b"" for one that no terminal sends."""
    if key in _PLAIN:
        return _PLAIN[key]
    *held, name = key.split("+") if key != "+" else ["+"]
    modifier = 1 + sum(_MODIFIERS.get(word, 0) for word in held)
    if name in _CURSOR:
        if modifier > 1:
            return f"\x1b[1;{modifier}{_CURSOR[name]}".encode()
        return f"\x1b{'O' if has_application_cursor else '['}{_CURSOR[name]}".encode()
    if name in _TILDE:
        return f"\x1b[{_TILDE[name]}{f';{modifier}' if modifier > 1 else ''}~".encode()
    if name in _FUNCTION:
        return f"\x1b[1;{modifier}{_FUNCTION[name]}".encode() if modifier > 1 else f"\x1bO{_FUNCTION[name]}".encode()
    if "ctrl" in held and len(name) == 1 and name.isascii() and name.isalpha():
        content = bytes([ord(name.upper()) & 31])
        return b"\x1b" + content if "alt" in held else content
    if "alt" in held and len(name) == 1:
        return b"\x1b" + (name.upper() if "shift" in held else name).encode()
    return character.encode() if character is not None else b""
