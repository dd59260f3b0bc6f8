"""Which of the user's environment variables a project's programs get: agents, test runs and set-up commands. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from fnmatch import translate
from typing import Final

from swarm_tui.model.masking import FORMS, is_secret_name

ALLOWED: Final[tuple[tuple[str, str], ...]] = (
    (
        "the user and the system",
        "PATH HOME USER LOGNAME SHELL HOSTNAME PWD TMPDIR TMP TEMP XDG_* WSL_* WSLENV DEBIAN_FRONTEND",
    ),
    ("language and time", "LANG LANGUAGE LC_* TZ LOCPATH LOCALE_ARCHIVE"),
    (
        "the terminal",
        "TERM TERMINFO COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE PAGER EDITOR VISUAL",
    ),
    ("the screen", "DISPLAY WAYLAND_DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS QT_* GDK_* SDL_* LIBGL_* MESA_*"),
    (
        "the network",
        "HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy ftp_proxy all_proxy no_proxy"
        " SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_* AWS_CA_BUNDLE"
        " HTTPLIB2_CA_CERTS GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ),
    (
        "Python",
        "PYTHON* VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_* MAMBA_* PYENV_* PIP_* UV_* POETRY_* PIPENV_* PDM_* HATCH_*"
        " TOX_* NOX_* COVERAGE_* HYPOTHESIS_* MPLBACKEND MPLCONFIGDIR NUMBA_* DJANGO_SETTINGS_MODULE",
    ),
    (
        "libraries and compilers",
        "LD_LIBRARY_PATH LD_PRELOAD DYLD_* LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH PKG_CONFIG* CC CXX"
        " CPP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS ARCHFLAGS MAKEFLAGS CMAKE_* RUSTFLAGS RUSTUP_* CARGO_* GOPATH GOROOT"
        " GOCACHE GOFLAGS GOPROXY GOMODCACHE JAVA_HOME JAVA_OPTS GRADLE_USER_HOME NODE_PATH NODE_OPTIONS NVM_*"
        " NPM_CONFIG_PREFIX NPM_CONFIG_CACHE NPM_CONFIG_REGISTRY NPM_CONFIG_USERCONFIG"
        " RUST_BACKTRACE GEM_HOME GEM_PATH PERL5LIB SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET"
        " HOMEBREW_PREFIX NIX_* GI_TYPELIB_PATH GST_* FONTCONFIG_* SOURCE_DATE_EPOCH CCACHE_* MANPATH INFOPATH",
    ),
    (
        "processors",
        "OMP_* MKL_* OPENBLAS_* BLIS_* VECLIB_* GOMP_* CUDA_* NVIDIA_* NVPL_* ROCR_* HIP_* HSA_* XLA_* JAX_*"
        " TF_CPP_* TF_ENABLE_* TF_FORCE_* TF_DETERMINISTIC_* TF_XLA_FLAGS TORCH_* PYTORCH_* HF_HOME",
    ),
    ("continuous integration", "CI CONTINUOUS_INTEGRATION GITHUB_ACTIONS GITLAB_CI TF_BUILD TRAVIS APPVEYOR"),
    ("git", "GIT_CONFIG_* GIT_AUTHOR_* GIT_COMMITTER_* GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_TRACE* GIT_LFS_* EMAIL"),
    ("mngr and swarm-tui", "MNGR_* TMUX_TMPDIR SWARM_*"),
)
"""The names that are passed, each row with what they are for; * matches any characters."""

_ALLOWED: Final = re.compile("|".join(translate(pattern) for _, row in ALLOWED for pattern in row.split()))
_NUMBERED_CONFIG: Final = re.compile(r"GIT_CONFIG_(?:KEY|VALUE)_\d+")
# They differ from shell to shell, and no test needs them.
_UNINTERESTING: Final = frozenset({"_", "OLDPWD", "SHLVL", "TMUX", "TMUX_PANE", "LS_COLORS", "LESS", "PS1", "PROMPT"})


def is_passed(name: str, value: str) -> bool:
    """Return whether a project's programs get a variable without `--pass-env`."""
    return is_allowed_name(name) and not is_secret_name(name) and not holds_secret(value)


def is_allowed_name(name: str) -> bool:
    return _ALLOWED.match(name) is not None


@functools.lru_cache(maxsize=1024)
def holds_secret(value: str) -> bool:
    """Return whether a value has the form of a secret, or contains one, such as a password in an address."""
    return any(form.needle in value and form.pattern.search(value) is not None for form in FORMS)


def passed_only(environment: Mapping[str, str], given: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that a project's programs get; `given` names those that they get in another way."""
    kept = {name: value for name, value in environment.items() if is_passed(name, value)}
    numbered = {name for name in environment if _NUMBERED_CONFIG.fullmatch(name)}
    if numbered - kept.keys() - set(given):
        # git refuses to run if one of them is missing, but ignores them all without their count.
        kept.pop("GIT_CONFIG_COUNT", None)
    return kept


def withheld_names(environment: Mapping[str, str], passed: Collection[str]) -> list[str]:
    """Return the names of the variables that a project's programs do not get; `passed` names those of `--pass-env`."""
    names = (name for name, value in environment.items() if not is_passed(name, value))
    return sorted(name for name in names if name not in passed and name not in _UNINTERESTING)
