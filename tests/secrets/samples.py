"""Makes secrets from the patterns by which other programs find them, and writes them as people and programs do."""

from __future__ import annotations

import random
import re
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # nothing else gives a pattern as a tree
from typing import Any, Final, NamedTuple

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
WRITTEN: Final = (
    '{name}_api_token = "{secret}"', "{NAME}_TOKEN={secret}", "{name}Token = '{secret}'", "{name}_token: {secret}",
    '{{"{name}_token": "{secret}"}}', "export {NAME}_API_KEY={secret}", "{name}Secret := `{secret}`",
    '"{{\\"{name}_password\\": \\"{secret}\\"}}"', "<{name}Token>\n    {secret}\n</{name}Token>",
    "x-{name}-api-key: {secret}", 'String {name}Token = "{secret}";', "https://x.org/?{name}_token={secret}&a=b",
)  # fmt: skip


class Sample(NamedTuple):
    """A text with a secret in it."""

    rule: str
    text: str
    secret: str


class _NotMade(Exception):
    """A pattern that this generator cannot follow."""


class _Maker:
    """Makes strings that match a pattern."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._groups: dict[int, str] = {}

    def make(self, tree: Any) -> str:
        return "".join(self._one(kind, value) for kind, value in tree)

    def _one(self, kind: Any, value: Any) -> str:
        match str(kind):
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL" | "ANY":
                return self._dice.choice(_ALPHABET)
            case "IN":
                return self._dice.choice(self._class(value))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                least = max(low, 12) if low and high == _constants.MAXREPEAT else low
                count = self._dice.randint(least, min(high, max(least, 2 if low == 0 else least + 3)))
                return "".join(self.make(inner) for _ in range(count))
            case "SUBPATTERN":
                number, _, _, inner = value
                made = self.make(inner)
                if number is not None:
                    self._groups[number] = made
                return made
            case "BRANCH":
                return self.make(self._dice.choice(value[1]))
            case "GROUPREF":
                return self._groups.get(value, "")
            case "AT" | "ASSERT_NOT":
                return ""
            case "ASSERT":
                return ""
        raise _NotMade(str(kind))

    def _class(self, items: Any) -> str:
        found, is_negated = "", False
        for kind, value in items:
            match str(kind):
                case "NEGATE":
                    is_negated = True
                case "LITERAL":
                    found += chr(value)
                case "RANGE":
                    found += "".join(map(chr, range(value[0], value[1] + 1)))
                case "CATEGORY":
                    if value == _constants.CATEGORY_DIGIT:
                        found += "0123456789"
                    elif value == _constants.CATEGORY_WORD:
                        found += _ALPHABET
                    elif value == _constants.CATEGORY_SPACE:
                        found += " "
                    else:
                        found += _ALPHABET
        if is_negated:
            return "".join(set(_ALPHABET) - set(found)) or "x"
        if '"' in found and "'" in found:
            # People close a quote with the sign that they opened it with.
            return '"'
        letters = "".join(character for character in found if character in _ALPHABET)
        return letters if len(letters) > 5 else found


def make(pattern: str, dice: random.Random) -> str:
    """Return a string that matches a pattern; raise _NotMade for one that cannot be followed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Maker(dice).make(_parser.parse(pattern))
    except (re.error, IndexError, OverflowError) as error:
        raise _NotMade(str(error)) from error


def of_detect_secrets(dice: random.Random, each: int) -> Iterator[Sample]:
    """Return secrets by the patterns of detect-secrets, as it is installed."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    plugin: Any
    for name, plugin in sorted(get_mapping_from_secret_type_to_class().items()):
        for pattern in getattr(plugin, "denylist", ()):
            # The first is only the line above a key; addresses are no secrets.
            if name in ("Private Key", "Public IP (ipv4)"):
                continue
            for _ in range(each):
                whole = make(_for_python(pattern.pattern), dice).strip()
                yield Sample(name, f"see {whole} there", secret_in(whole, pattern.pattern))


def of_gitleaks(rules: Path, dice: random.Random, each: int) -> Iterator[Sample]:
    """Return secrets by the rules of gitleaks' own configuration file."""
    for rule in tomllib.loads(rules.read_text())["rules"]:
        # What these find is a whole command, in which only the password is the secret.
        if not rule.get("regex") or rule["id"].startswith("curl-"):
            continue
        # Rules for what has no form of its own know it by the name of its maker beside it.
        value = rule["regex"].rpartition("[\\x60'\"\\s=]{0,5}(")[2]
        is_beside_name = value != rule["regex"]
        pattern = _for_python("(" + value if is_beside_name else rule["regex"])
        for number in range(each):
            try:
                made = make(pattern, dice)
            except _NotMade:
                continue
            secret = secret_in(made, pattern)
            if not is_beside_name:
                yield Sample(rule["id"], f"see {made.strip()} there", secret)
                continue
            name = rule["id"].partition("-")[0]
            written = WRITTEN[(number + len(rule["id"])) % len(WRITTEN)]
            yield Sample(rule["id"], written.format(name=name, NAME=name.upper(), secret=secret), secret)


def secret_in(text: str, pattern: str) -> str:
    """Return the part of a sample that is the secret itself: what the pattern groups, else its longest word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = re.search(pattern, text)
    if found:
        text = next((group for group in reversed(found.groups()) if group and len(group) > 7), text)
    words = re.findall(r"[A-Za-z0-9+/_.~%|-]+={0,2}", text.rpartition("://")[2])
    return max((word.strip("-") for word in words if ".com" not in word), key=len, default=text)


def _for_python(pattern: str) -> str:
    """Return a pattern of Go's for Python; letters of any case count as small ones."""
    pattern = pattern.replace(r"(?:[\x60'\"\s;]|\\[nr]|$)", "").replace("[[:alnum:]]", "[A-Za-z0-9]")
    pattern = pattern.replace(r"\z", r"\Z").replace("(?-i:", "(?:").replace("(?i:", "(?:")
    pattern = re.sub(r"(?<!\\)\.(contribsys|slack|softlayer|com\b)", r"\\.\1", pattern)
    return pattern.replace("(?i)", "")


def is_hidden(masked: str, sample: Sample) -> bool:
    """Return whether nothing is left of the second half of a secret; its beginning may say whose it is."""
    bare = re.sub(r"\x1b\[[0-9;]*m|\r?\n", "", masked)
    secret = sample.secret[max(4, len(sample.secret) // 2) :]
    return not any(secret[start : start + 5] in bare for start in range(max(1, len(secret) - 4)))
