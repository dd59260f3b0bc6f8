"""The user's settings of Codex, and those in command line arguments. mngr gives agents other settings."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from swarm_tui.files import read_regular

KEPT_KEYS: Final = ("model", "model_provider", "model_reasoning_effort", "model_verbosity", "openai_base_url")
_SECRET_KEYS: Final = ("http_headers", "experimental_bearer_token")


def read_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the user's `config.toml`; empty if it is missing or invalid."""
    home = environment.get("CODEX_HOME") or Path(environment.get("HOME") or Path.home()) / ".codex"
    try:
        return tomllib.loads(read_regular(Path(home) / "config.toml").decode())
    except (OSError, ValueError, RecursionError):
        return {}


def overrides(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the settings in arguments, as `-c KEY=VALUE` and `--config KEY=VALUE`."""
    words = iter(arguments)
    for word in words:
        if word in ("-c", "--config"):
            word = next(words, "")
        elif word.startswith("--config="):
            word = word.removeprefix("--config=")
        else:
            continue
        key, _, value = word.partition("=")
        yield key.strip(), value.strip()


def with_overrides(settings: Mapping[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """Return settings as Codex uses them with these arguments."""
    merged: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    for key, raw in overrides(arguments):
        try:
            value: Any = tomllib.loads(f"value = {raw}")["value"]
        except ValueError:
            value = raw
        *parents, name = key.split(".")
        table = merged
        for parent in parents:
            inner = table.get(parent)
            table[parent] = table = inner if isinstance(inner, dict) else {}
        table[name] = value
    return merged


def provider_of(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of the selected model provider; None for OpenAI's own."""
    providers = settings.get("model_providers")
    found = providers.get(settings.get("model_provider")) if isinstance(providers, dict) else None
    return found if isinstance(found, dict) else None


def key_variable(settings: Mapping[str, Any]) -> str:
    """Return the variable with the key of the selected provider, or ""."""
    name = (provider_of(settings) or {}).get("env_key")
    return name if isinstance(name, str) else ""


def secret_in(settings: Mapping[str, Any]) -> str:
    """Return the key of the selected provider's table that may have a secret as its value, or ""."""
    provider = provider_of(settings) or {}
    return next((key for key in _SECRET_KEYS if provider.get(key)), "")


def kept_arguments(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the arguments that give an agent the user's model, provider and reasoning effort."""
    kept = {key: settings[key] for key in KEPT_KEYS if isinstance(settings.get(key), str)}
    provider = provider_of(settings)
    if provider is not None:
        kept[f"model_providers.{settings['model_provider']}"] = provider
    return tuple(word for key, value in kept.items() for word in ("-c", f"{key}={toml_value(value)}"))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)


def toml_value(value: object) -> str:
    """Return a value in TOML, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}={toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    # Apart from dates, which no setting has, the scalars of TOML are those of JSON.
    return json.dumps(value, ensure_ascii=False, default=str)
