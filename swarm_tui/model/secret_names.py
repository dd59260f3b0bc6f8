"""Which names of variables, keys and headers stand for secrets. Pure."""

from __future__ import annotations

import re
from typing import Final

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
# The folder that a shell is in, and the one before.
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD"})
# What such a name ends with when it stands for something about a secret.
_ABOUT_SECRETS: Final = frozenset({
    "COUNT", "TYPE", "LIMIT", "BUDGET", "NAME", "URL", "URI", "FILE", "PATH", "EXPIRES", "EXPIRY", "LENGTH", "LEN",
    "USAGE", "ENDPOINT", "FIELD", "HEADER", "POLICY", "HINT", "ENV", "VAR", "VERSION", "ALGORITHM", "AGE", "TTL",
    "CLASS", "FORM", "FORMS", "KIND", "PREFIX", "PATTERN", "STORE", "MANAGER", "PROVIDER", "COST", "RATE", "INDEX",
    "HELP", "LABEL", "PROMPT", "ERROR", "STATUS", "VALID", "REQUIRED", "ENABLED",
})  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Return whether a variable of that name is likely to hold a secret."""
    upper = name.upper()
    if upper in _NO_SECRETS:
        return False
    return bool(_WORDS.intersection(upper.split("_"))) or upper.endswith(_ENDINGS)


def is_secret_key(name: str) -> bool:
    """Return the same for any spelling of a name (`clientSecret`, `X-Api-Key`), and not for facts about a secret."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    spelled = re.sub(r"[^A-Za-z0-9]+", "_", spelled).strip("_").upper()
    return is_secret_name(spelled) and spelled.rpartition("_")[2] not in _ABOUT_SECRETS
