"""A project's programs get the variables that test runs need, and none that may hold a secret."""

from __future__ import annotations

import pytest

from swarm_tui.model.environment import is_passed, passed_only, withheld_names

NEEDED = {
    "PATH": "/home/ada/.local/bin:/usr/bin",
    "HOME": "/home/ada",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/home/ada/.cache",
    "HTTPS_PROXY": "http://proxy.example.org:3128",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem",
    "PYTHONPATH": "/a:/b",
    "PYTHONHASHSEED": "0",
    "VIRTUAL_ENV": "/p/.venv",
    "CONDA_PREFIX": "/opt/conda",
    "LD_LIBRARY_PATH": "/usr/local/lib",
    "DISPLAY": ":0",
    "CI": "true",
    "DJANGO_SETTINGS_MODULE": "site.settings",
    "PIP_INDEX_URL": "https://pypi.example.org/simple",
    "CUDA_VISIBLE_DEVICES": "0",
    "OMP_NUM_THREADS": "2",
}
WITHHELD = {
    "DATABASE_URL": "postgres://localhost/shop",
    "GH_PAT": "ghp_" + "a1" * 18,
    "OPENAI_KEY": "sk-" + "a1" * 24,
    "SLACK_WEBHOOK": "https://hooks.slack.com/services/" + "a1" * 12,
    "STRIPE_KEY": "sk_live_" + "a1" * 12,
    "BEARER": "abcdef",
    "SENTRY_DSN": "https://" + "a1" * 16 + "@o1.ingest.sentry.io/1",
    "MYAPP_CREDS": "ada:lovelace",
    "KUBECONFIG": "/home/ada/.kube/config",
    "AWS_PROFILE": "production",
    "SSH_AUTH_SOCK": "/tmp/agent.1",
    # Common names whose values hold a secret, or that are secrets by their names.
    "HTTPS_PROXY": "http://ada:lovelace@proxy.example.org:3128",
    "PIP_INDEX_URL": "https://ada:lovelace@pypi.example.org/simple",
    "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic " + "YWRhOmxvdmVsYWNl",
    "XDG_NOTE": "ghp_" + "a1" * 18,
    "UV_PUBLISH_TOKEN": "abc",
    "POETRY_HTTP_BASIC_SHOP_PASSWORD": "abc",
}


@pytest.mark.parametrize("name", NEEDED)
def test_variable_that_test_runs_need_is_passed(name: str) -> None:
    assert is_passed(name, NEEDED[name])


@pytest.mark.parametrize("name", WITHHELD)
def test_variable_that_may_hold_a_secret_is_withheld(name: str) -> None:
    assert not is_passed(name, WITHHELD[name])


def test_withheld_names_leave_out_what_the_user_passes() -> None:
    environment = NEEDED | WITHHELD | {"OLDPWD": "/", "SHLVL": "2"}
    assert withheld_names(environment, ["DATABASE_URL", "HTTPS_PROXY"]) == sorted(
        WITHHELD.keys() - {"DATABASE_URL", "HTTPS_PROXY"}
    )


def test_git_config_is_passed_whole_or_not_at_all() -> None:
    plain = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    assert passed_only(plain) == plain
    secret = plain | {"GIT_CONFIG_VALUE_0": WITHHELD["GIT_CONFIG_VALUE_0"]}
    assert passed_only(secret) == {"GIT_CONFIG_KEY_0": "a.b"}
    assert passed_only(secret, ["GIT_CONFIG_VALUE_0"]).keys() == {"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0"}
