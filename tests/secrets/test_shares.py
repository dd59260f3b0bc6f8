"""Of what other programs know as secrets nearly all is masked, and of ordinary lines nearly none."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from swarm_tui.model.masking import FORMS, MASK, mask_secrets
from tests.secrets.__main__ import CUTS, cut_in, lines_of, missed
from tests.secrets.samples import WRITTEN, Sample, is_hidden, make, of_detect_secrets

TESTS = Path(__file__).parents[1]
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@cache
def samples() -> tuple[Sample, ...]:
    """Return more than 300 secrets: by the patterns of detect-secrets, by ours, and such that only their name tells."""
    dice = random.Random(1)
    found = [*of_detect_secrets(dice, 3)]
    for form in FORMS:
        made = make(form.pattern.pattern, dice)
        matched = form.pattern.search(made)
        if matched is not None and form.name != "private key":
            found.append(Sample(form.name, f"see {made} there", matched[form.pattern.groups and 1]))
    for number, written in enumerate(WRITTEN * 10):
        secret = make(("[a-z0-9]{20}", "[A-Za-z0-9+/]{40}", "[a-f0-9]{32}", "[A-Za-z0-9_-]{24}")[number % 4], dice)
        found.append(Sample(written, written.format(name="acme", NAME="ACME", secret=secret), secret))
    return tuple(found)


@pytest.mark.parametrize("cut", CUTS)
def test_nearly_all_secrets_are_masked_also_when_they_are_cut(cut: str) -> None:
    assert len(samples()) > 300
    dice = random.Random(2)
    left = missed(cut_in(sample, CUTS[cut], dice) for sample in samples())
    assert len(left) <= 0.02 * len(samples()), left


def test_every_form_names_a_source_and_is_looked_for_where_it_is() -> None:
    dice = random.Random(3)
    for form in FORMS:
        assert form.source, form.name
        assert form.needle in make(form.pattern.pattern, dice), form.name


@pytest.mark.parametrize("folder", ["failures/recorded", "room/shown", "sweep"])
def test_ordinary_lines_stay(folder: str) -> None:
    lines = list(lines_of(TESTS / folder, 2_000, random.Random(0)))
    changed = [line for line in lines if mask_secrets(line) != line]
    assert len(changed) <= 0.01 * len(lines), changed


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"AWS_SECRET_ACCESS_KEY={AWS_SECRET}", AWS_SECRET),
        (f"aws_session_token = {AWS_SECRET}", AWS_SECRET),
        ("PGPASSWORD=hunter psql -h db", "hunter"),
        ("db:\n  password: hunter\n  user: me\n", "hunter"),
        ('{"user": "me", "db_password": "hunter"}', "hunter"),
        ("machine x.org login me password hunter22\n", "hunter22"),
        ("X-Api-Key: 8Rycg5TnZjykn", "8Rycg5TnZjykn"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
        ("curl -u me:hunter22 https://x.org", "hunter22"),
        ("AccountName=a;AccountKey=" + "k9" * 40 + "==;EndpointSuffix=x", "k9" * 40 + "=="),
        ("mysql --password=hunter22", "hunter22"),
    ],
)  # fmt: skip
def test_what_has_no_form_is_masked_by_the_name_beside_it(text: str, secret: str) -> None:
    masked = mask_secrets(text)
    assert secret not in masked
    assert masked == text.replace(secret, MASK * len(secret))


@pytest.mark.parametrize(
    "text",
    [
        "def f(token: str, password=None): self.token = token",
        "password = get_password()",
        "max_tokens=100, tokens: 12345678, 573,197 tokens used",
        "token: Token = Token()",
        'raise ValueError("the secret may not be empty")',
        "TOKEN=$TOKEN PASSWORD=${PASSWORD} api_key=<your key>",
        "token_type: bearer, secret_name: db",
        "PWD=/home/me/project OLDPWD=/home/me",
        "tokenizer = AutoTokenizer()",
    ],
)
def test_what_only_speaks_of_secrets_stays(text: str) -> None:
    assert mask_secrets(text) == text


def test_a_secret_that_a_line_break_cuts_is_masked_on_both_lines_and_the_next_word_stays() -> None:
    token = "ghp_" + "aB3" * 12
    masked = mask_secrets(f"{token[:20]}\n{token[20:]}\nnext line")
    assert is_hidden(masked, Sample("", "", token))
    assert masked.endswith("\nnext line")
