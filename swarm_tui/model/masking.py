"""Mask secrets in text, by form and by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from swarm_tui.model.secret_forms import FORMS
from swarm_tui.model.text import plain, plain_lines

_WORDS: Final = frozenset(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "PW", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
)
_ENDINGS: Final = (
    *("API_KEY", "ACCESS_KEY", "SECRET_KEY", "PRIVATE_KEY", "ACCESS_KEY_ID", "ACCOUNT_KEY", "AUTH_KEY", "MASTER_KEY"),
    *("ENCRYPTION_KEY", "SIGNING_KEY", "SHARED_KEY", "DEPLOY_KEY", "LICENSE_KEY", "STORAGE_KEY", "SERVICE_KEY"),
    *(
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "PWD",
        "SECRET",
        "APIKEY",
        "APIPASS",
        "ACCESSKEY",
        "SECRETKEY",
        "CONNECTION_STRING",
    ),
)
# The shell's current and previous folder.
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
# Last words of names whose value is not the secret itself, such as TOKEN_COUNT.
_ABOUT_SECRETS: Final = frozenset({
    "COUNT", "TYPE", "LIMIT", "BUDGET", "NAME", "URL", "URI", "FILE", "PATH", "EXPIRES", "EXPIRY", "LENGTH", "LEN",
    "USAGE", "ENDPOINT", "FIELD", "HEADER", "POLICY", "HINT", "ENV", "VAR", "VERSION", "ALGORITHM", "AGE", "TTL",
    "CLASS", "FORM", "FORMS", "KIND", "PREFIX", "PATTERN", "STORE", "MANAGER", "PROVIDER", "COST", "RATE", "INDEX",
    "HELP", "LABEL", "PROMPT", "ERROR", "STATUS", "VALID", "REQUIRED", "ENABLED",
})  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Return whether an environment variable with this name probably contains a secret."""
    upper = name.upper()
    if upper in _NO_SECRETS:
        return False
    return bool(_WORDS.intersection(upper.split("_"))) or upper.endswith(_ENDINGS)


def is_secret_key(name: str) -> bool:
    """Return the same for any spelling (`clientSecret`, `X-Api-Key`), except for names such as TOKEN_COUNT."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    spelled = re.sub(r"[^A-Za-z0-9]+", "_", spelled).strip("_").upper()
    return is_secret_name(spelled) and spelled.rpartition("_")[2] not in _ABOUT_SECRETS


MASK: Final = "•"
_SHOWN_OF_SECRET: Final = 4
_ESCAPES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_BREAKS: Final = re.compile(r"\r?\n")
# A line break between two words, the words after such breaks, and the word before.
_CUT: Final = re.compile(r"(?<=\S)\r?\n(?=\S)")
_CUT_WORD: Final = re.compile(r"(?:\r?\n\S{1,400})+")
_WORD: Final = re.compile(r"\S+")
_WORD_END: Final = re.compile(r"\S{1,400}\Z")
_WORD_LIMIT: Final = 400
# The possible rest of a secret on the next line.
_REST_OF_SECRET: Final = re.compile(r"\r?\n([A-Za-z0-9_+/=.~-]{3,})(?=[\s\"'`,;&<\\)\]}]|$)")

_KEYWORD: Final = re.compile(
    r"(?i:token|secret|passw(?:or)?d|passphrase|pass(?=[\"'\s:=\]])|pwd?(?=[\"'\s:=\]])|credential|connection[_-]?string"
    r"|(?:api|access|private|account|auth|master|encryption|signing|shared|deploy|license|storage|service)[_. -]?key"
    r"|key(?=\\?[\"'\]\s:=]))"
)
_NAME_CHARACTERS: Final = re.compile(r"[\w.-]*\Z")
# The rest of a name, the separator, and the value, which is quoted or extends to the end of the word.
_BESIDE_NAME: Final = re.compile(
    r"""(?P<rest>[\w.-]{0,40})
    (?P<between>
        (?:\\*["'`])?\]?[ \t]{0,3}(?:(?:string|String)[ \t]+)?(?::{0,3}=|\?=|\+=|\.=|=>|:{1,3})>?[ \t]{0,5}
      | \\*["'`],[ \t]{0,3}(?=\\*["'`])
      | >\s{0,40}
      | (?:\\*["'`])?\]?[ \t]{1,20}
    )
    (?:[bfru]{0,2}(?P<quote>\\*["'`])(?P<quoted>(?:[^\n]|\n(?=\S)){1,500}?)(?P=quote)
      | (?P<element>[^<\s]{1,300}(?:\r?\n[^<\s]{1,300})?)(?=\s{0,40}</)
      | \\*["'`]?(?P<bare>[^\s"'`,;()\[\]{}<>|&\\]{1,500}))""",
    re.VERBOSE,
)
_HEADER: Final = re.compile(
    r"(?i:authorization|cookie|x-[a-z-]{0,30}(?:auth|key|token|secret)[a-z-]{0,20})\\?[\"']?[ \t]{0,3}[:=][ \t]{0,3}"
    r"\\?[\"']?(?:(?:basic|bearer|token|digest|apikey|negotiate)[ \t]+)?(?P<value>[^\s\"'\\<>{}$,;]{6,4000})"
)
_NO_VALUES: Final = frozenset({
    "none", "null", "nil", "true", "false", "str", "string", "int", "integer", "float", "bool", "boolean", "bytes",
    "any", "optional", "object", "dict", "list", "required", "secret", "token", "password", "passwd", "passphrase",
    "pass", "key", "value", "hidden", "masked", "redacted", "empty", "undefined", "unset", "example", "yes", "no",
    "not", "is", "in", "of", "to", "for", "and", "the", "a", "an", "from", "by", "with", "must", "should", "was",
    "has", "are", "or", "if", "else", "self", "cls", "return", "this", "text", "number", "bearer", "basic",
    "default",
})  # fmt: skip
# A long random value after the word "key", except 40 hexadecimal digits, which are a commit id.
_LONG_KEY: Final = re.compile(r"(?![0-9a-f]{40}\Z)(?=[^0-9]*[0-9])[A-Za-z0-9+/_-]{32,}={0,2}")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_.]*")
_SHORT_NUMBER: Final = re.compile(r"[\d.,]{1,7}[kKmM%]?")


class _Span(NamedTuple):
    """The range of a secret in a text, and the number of leading characters that stay visible."""

    start: int
    end: int
    shown: int = 0


def mask_secrets(text: str) -> str:
    """Return the text with secrets masked."""
    # Masking a secret can reveal another one directly after it.
    while (masked := _masked_once(text)) != text:
        text = masked
    return text


def _masked_once(text: str) -> str:
    bare, places = _without(text, _ESCAPES, range(len(text))) if "\x1b" in text else (text, range(len(text)))
    spans = list(_spans_by_form(bare))
    spans += _rests(bare, spans)
    spans += _split_spans(bare, spans)
    named = [span for span in _spans_by_name(bare) if not any(_overlap(span, other) for other in spans)]
    named += _rests(bare, named)
    if not (spans or named):
        return text
    characters = list(text)
    for start, end, shown in (*spans, *named):
        for place in places[start + shown : end]:
            if not text[place].isspace():
                characters[place] = MASK
    return "".join(characters)


def mask_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a text, such as a recording, with secrets masked, even if a secret spans pieces."""
    whole = "".join(pieces)
    masked = mask_secrets(whole)
    if masked == whole:
        return list(pieces)
    masked_pieces = []
    start = 0
    for piece in pieces:
        masked_pieces.append(masked[start : start + len(piece)])
        start += len(piece)
    return masked_pieces


def _without(text: str, left_out: re.Pattern[str], places: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return the text without matches of a pattern, and the original position of each remaining character."""
    kept: list[int] = []
    parts: list[str] = []
    start = 0
    for found in left_out.finditer(text):
        parts.append(text[start : found.start()])
        kept += places[start : found.start()]
        start = found.end()
    parts.append(text[start:])
    kept += places[start:]
    return "".join(parts), kept


def _overlap(one: _Span, other: _Span) -> bool:
    return one.start < other.end and other.start < one.end


def _spans_by_form(text: str) -> Iterator[_Span]:
    for form in FORMS:
        if form.needle in text:
            for found in form.pattern.finditer(text):
                # The prefix of a token names its service. No part of a password or key is safe to show.
                if form.pattern.groups:
                    yield _Span(*found.span(1))
                else:
                    yield _Span(*found.span(), _SHOWN_OF_SECRET)


def _rests(text: str, spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the continuations of secrets after a line break, unless they look like an ordinary word."""
    for span in spans:
        end = span.end
        while found := _REST_OF_SECRET.match(text, end):
            rest = found[1]
            is_line = text[found.end() : found.end() + 1] not in (" ", "\t", ",")
            if not any(map(str.isdigit, rest)) and rest.islower() and not is_line:
                break
            yield _Span(*found.span(1))
            end = found.end()


def _split_spans(text: str, spans: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the secrets that match a format only after line breaks are removed."""
    joined, places = _joined_words(text)
    for span in _spans_by_form(joined):
        found = _Span(places[span.start], places[span.end - 1] + 1, span.shown)
        if not any(_overlap(found, other) for other in spans):
            yield found


def _joined_words(text: str) -> tuple[str, list[int]]:
    """Return the words that line breaks may have split, joined and one per line, and the original positions."""
    parts: list[str] = []
    places: list[int] = []
    end = 0
    for cut in _CUT.finditer(text):
        if cut.start() < end:
            continue
        before = _WORD_END.search(text, max(end, cut.start() - _WORD_LIMIT), cut.start())
        after = _CUT_WORD.match(text, cut.start())
        if before is None or after is None:
            continue
        end = after.end()
        after_cut = ((cut.start() + word.start(), cut.start() + word.end()) for word in _WORD.finditer(after[0]))
        for start, stop in ((before.start(), cut.start()), *after_cut):
            parts.append(text[start:stop])
            places += range(start, stop)
        parts.append("\n")
        places.append(end - 1)
    return "".join(parts), places


def _spans_by_name(text: str) -> Iterator[_Span]:
    for found in _HEADER.finditer(text):
        if MASK not in found["value"] and not found["value"].isalpha():
            yield _Span(*found.span("value"))
    end = 0
    for keyword in _KEYWORD.finditer(text):
        if keyword.start() < end:
            continue
        before = _NAME_CHARACTERS.search(text, max(0, keyword.start() - 60), keyword.start())
        beside = _BESIDE_NAME.match(text, keyword.end())
        if beside is None:
            continue
        name = (before[0] if before else "") + keyword[0] + beside["rest"]
        group = beside.lastgroup or "bare"
        rest = _REST_OF_SECRET.match(text, beside.end())
        whole = _BREAKS.sub("", beside[group]) + (rest[1] if rest else "")
        is_named = is_secret_key(name) or _LONG_KEY.fullmatch(whole) is not None
        if is_named and _is_secret_value(name, beside, text):
            yield _Span(*beside.span(group))
            end = beside.end()


def _is_secret_value(name: str, beside: re.Match[str], text: str) -> bool:
    """Return whether the text after a secret's name is its value, rather than a type, expression or reference."""
    value, between = beside[beside.lastgroup or "bare"], beside["between"]
    sign = between.strip(" \t\r\n\"'`]\\")
    if MASK in value or value[0] in "$<{%*" or value.lower() in _NO_VALUES or value.lower() in name.lower():
        return False
    has_digit = any(map(str.isdigit, value))
    if beside["quoted"] is not None:
        is_one_word = not any(map(str.isspace, _BREAKS.sub("", value)))
        return len(value) > 2 and is_one_word and (bool(sign) or (len(value) > 7 and (has_digit or len(value) > 15)))
    if beside["element"] is not None:
        return len(value) > 3
    rest = _REST_OF_SECRET.match(text, beside.end()) if sign else None
    if rest is not None and len(rest[1]) > 5 and any(map(str.isdigit, rest[1])):
        return True
    if _SHORT_NUMBER.fullmatch(value):
        return False
    is_word = _IDENTIFIER.fullmatch(value) is not None
    if not sign:
        # Two words, as in .netrc and `--token VALUE`.
        return len(value) > 7 and has_digit
    if not is_word:
        return len(value) > 3 and (any(map(str.isalnum, value)))
    if len(value) > 15 and text[beside.start("bare") - 1] in "\"'`":
        return True
    if text[beside.end() : beside.end() + 1] in tuple("([{.,)") or "." in value:
        return False
    if name == name.upper() or (sign == "=" and between == "="):
        return True
    # In YAML the value is alone on its line; the name of a type would start with a capital letter.
    line_start = text.rfind("\n", 0, beside.start()) + 1
    is_alone = text[line_start : beside.start()].strip(" \t-\"'").isidentifier() or line_start == beside.start()
    return sign.endswith(":") and is_alone and value[0].islower() and text[beside.end() :][:1] in ("", "\n", "\r")


LONG_TEXT_LIMIT: Final = 20_000


def safe_line(text: str, limit: int = 500) -> str:
    """Return the text as one safe line of at most `limit` characters."""
    return mask_secrets(plain(text, limit))


def safe_lines(text: str, limit: int = LONG_TEXT_LIMIT) -> str:
    """Return the text as safe lines of at most `limit` characters in total."""
    is_cut = len(text) > limit
    shown = mask_secrets(plain_lines(text[:limit])).rstrip()
    return f"{shown}\n… ({len(text) - limit:,} characters more)" if is_cut else shown


def safe_decoded(raw: bytes, limit: int = LONG_TEXT_LIMIT) -> str:
    return safe_lines(raw.decode("utf-8", "replace"), limit)
