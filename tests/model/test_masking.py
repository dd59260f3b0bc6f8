"""Secrets of known formats are masked, and other text does not change."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.masking import MASK, mask_pieces, mask_secrets
from tests.report.sweeps import SECRET

KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbm\nQAAAAtzc2\n-----END OPENSSH PRIVATE KEY-----"
)
SECRETS = [
    SECRET,
    "github_pat_" + "11ABCDEFG0_" + "x" * 50,
    "sk-ant-api03-" + "Zz9_" * 12,
    "sk-proj-abcdefghijklmnop1234",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefGHIJKL",
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
    "glpat-" + "aB3" * 8,
]


@pytest.mark.parametrize("secret", SECRETS)
def test_masked_token_keeps_prefix(secret: str) -> None:
    masked = mask_secrets(f"export TOKEN={secret}\nnext line")
    assert secret not in masked
    assert secret[:4] + MASK * (len(secret) - 4) in masked
    assert masked.endswith("\nnext line")


def test_bearer_tokens_passwords_and_keys_are_masked_completely() -> None:
    masked = mask_secrets(f"Authorization: Bearer abcdef0123456789\nhttps://ada:hunter22@example.org/x\n{KEY}\nafter")
    assert "abcdef" not in masked
    assert "hunter22" not in masked
    assert "https://ada:••••••••@example.org/x" in masked
    assert "b3Blb" not in masked
    assert masked.endswith("-----END OPENSSH PRIVATE KEY-----\nafter")


def test_truncated_private_key_is_masked() -> None:
    assert "b3Blb" not in mask_secrets(KEY[:90])


@pytest.mark.parametrize(
    "text", ["task-abcdefghijklmnopqrstuvwxyz", "a sk-short", "git@host:path", "https://example.org:8080/x@y", "AKIA"]
)
def test_text_similar_to_secret_is_not_masked(text: str) -> None:
    assert mask_secrets(text) == text


words = st.lists(st.one_of(st.text(max_size=8), st.sampled_from([*SECRETS, KEY, " ", "\n"])), max_size=6)


@given(words)
def test_masking_is_idempotent_and_keeps_length(parts: list[str]) -> None:
    text = "".join(parts)
    masked = mask_secrets(text)
    assert [len(line) for line in masked.split("\n")] == [len(line) for line in text.split("\n")]
    assert mask_secrets(masked) == masked


@given(words, st.lists(st.integers(0, 400), max_size=8))
def test_mask_pieces_equals_mask_of_whole_text(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    assert "".join(mask_pieces(pieces)) == mask_secrets(text)
    assert [len(piece) for piece in mask_pieces(pieces)] == [len(piece) for piece in pieces]
