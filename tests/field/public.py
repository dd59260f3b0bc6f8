"""Projects of other people: their published sources, fetched when asked for, each installed as its developers would."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import urllib.parse
import urllib.request
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.field.project import FieldProject, KnownBug, ReadyProject, base_python, call
from tests.git_project import GitProject

INDEX: Final = "https://pypi.org/simple"
CACHE: Final = Path(os.environ.get("SWARM_FIELD_CACHE") or Path.home() / ".cache" / "swarm-field")
PYTEST: Final = "pytest==8.4.2"


@dataclass(frozen=True)
class SourceArchive:
    """A published archive of sources."""

    project: str
    file: str
    sha256: str

    def fetch(self) -> Path:
        """Return the archive, from the cache or from the index, with the content that it has to have."""
        path = CACHE / self.file
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != self.sha256:
            content = self._download()
            found = hashlib.sha256(content).hexdigest()
            if found != self.sha256:
                raise RuntimeError(f"{self.file} has the checksum {found}, not {self.sha256}")
            CACHE.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(content)
            draft.rename(path)
        return path

    def _download(self) -> bytes:
        index = (os.environ.get("PIP_INDEX_URL") or INDEX).rstrip("/")
        with urllib.request.urlopen(f"{index}/{self.project}/", timeout=60) as page:
            links = re.findall(r'href="([^"#]+)', page.read().decode())
        address = next((link for link in links if link.endswith(f"/{self.file}")), None)
        if address is None:
            raise RuntimeError(f"{index} has no {self.file}")
        with urllib.request.urlopen(urllib.parse.urljoin(f"{index}/{self.project}/", address), timeout=120) as file:
            content: bytes = file.read()
        return content


def make_public(
    archive: SourceArchive, requirements: tuple[str, ...], root: Path, *, environment: dict[str, str] | None = None
) -> ReadyProject:
    """Unpack a project, commit it, and install it editable into a `.venv` of its own, as its developers do."""
    with tarfile.open(archive.fetch()) as packed:
        packed.extractall(root.with_name("unpacked"), filter="data")
    (unpacked,) = root.with_name("unpacked").iterdir()
    unpacked.rename(root)
    repository = GitProject(root)
    with (root / ".git/info/exclude").open("a") as file:
        file.write("/.venv/\n*.so\n*.egg-info/\n__pycache__/\n.pytest_cache/\n.hypothesis/\n.coverage*\nbuild/\n")
    repository.commit(f"Begin with {archive.file}")
    call(base_python(), "-m", "venv", root / ".venv")
    python = root / ".venv" / "bin" / "python"
    settings = [f"{name}={value}" for name, value in (environment or {}).items()]
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    call("env", *settings, python, *install, *requirements, "--editable", root)
    return ReadyProject(repository, str(python))


def _public(
    archive: SourceArchive,
    habit: str,
    requirements: tuple[str, ...],
    bug: KnownBug,
    results: dict[str, str],
    *,
    environment: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    is_quick: bool = False,
    is_part_of_pytest: bool = False,
) -> FieldProject:
    make = partial(make_public, archive, (PYTEST, *requirements), environment=environment)
    chosen = arguments or tuple(results)
    return FieldProject(
        archive.project,
        habit,
        make,
        bug,
        results,
        chosen,
        ("--slots", "2", *options),
        is_quick=is_quick,
        is_part_of_pytest=is_part_of_pytest,
    )


_XDIST = ("pytest-cov==7.0.0", "pytest-xdist==3.8.0")

PUBLIC: Final[tuple[FieldProject, ...]] = (
    _public(
        SourceArchive(
            "click", "click-8.1.8.tar.gz", "ed53c9d8990d83c2a27deae68e4ee337473f6330c040a31d4225c9574d16096a"
        ),
        "src layout, ids with blanks",
        (),
        KnownBug("src/click/utils.py", 'if words[0] == "\\b":', 'if words[0] == "\\f":'),
        {
            "tests/test_utils.py::test_make_default_short_help[no-wrap mark-empty]": "impl_fix",
            "tests/test_utils.py::test_make_default_short_help[-empty]": "clean",
        },
        is_quick=True,
    ),
    _public(
        SourceArchive(
            "attrs", "attrs-26.1.0.tar.gz", "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32"
        ),
        "two packages in src, hypothesis",
        ("hypothesis==6.170.15", "cloudpickle==3.1.2"),
        KnownBug("src/attr/converters.py", '(False, "false", "f", "no",', '(False, "false", "f", "nope",'),
        {
            "tests/test_converters.py::TestToBool::test_falsy": "impl_fix",
            "tests/test_converters.py::TestToBool::test_truthy": "clean",
        },
    ),
    _public(
        SourceArchive(
            "pluggy", "pluggy-1.7.0.tar.gz", "d1eaa46ebb595891b860ab086b4d09c8588af65ebd4361b8e8f4bb8920b90ba8"
        ),
        "what pytest itself is built on, from the copy while pytest runs",
        (),
        KnownBug("src/pluggy/_tracing.py", "[{':'.join(tags)}]", "[{'.'.join(tags)}]"),
        {
            # pytest has loaded pluggy before a copy's code can be used: the fix cannot be verified.
            "testing/test_tracer.py::test_simple": "claimed",
            "testing/test_helpers.py::test_varnames": "clean",
        },
        environment={"SETUPTOOLS_SCM_PRETEND_VERSION": "1.7.0"},
        is_quick=True,
        is_part_of_pytest=True,
    ),
    _public(
        SourceArchive("yarl", "yarl-1.18.3.tar.gz", "ac1801c45cbf77b6c99242eeff4fffb5e4e73a800b5c4ad4fc0be5def634d2e1"),
        "-n auto, coverage and strictness in addopts; warnings are errors",
        (*_XDIST, "hypothesis==6.170.15", "covdefaults==2.3.0", "Cython==3.0.11"),
        KnownBug("yarl/_path.py", 'elif seg != ".":', 'elif seg != "":'),
        {
            "tests/test_normalize_path.py::test__normalize_path[path/./to-path/to]": "impl_fix",
            "tests/test_normalize_path.py::test__normalize_path[path/to-path/to]": "clean",
        },
        environment={"YARL_NO_EXTENSIONS": "1"},
    ),
    _public(
        SourceArchive(
            "more-itertools",
            "more_itertools-11.2.1.tar.gz",
            "cbf08fd0af284dc69718b9b76a8e6203df624d70209ea511e4219d350c856f63",
        ),
        "flat layout, thousands of subtests",
        (),
        KnownBug(
            "more_itertools/recipes.py",
            "return list(islice(iterable, n))\n\n\ndef tabulate",
            "return list(islice(iterable, n + 1))\n\n\ndef tabulate",
        ),
        {
            "tests/test_recipes.py::TakeTests::test_simple_take": "impl_fix",
            "tests/test_recipes.py::TakeTests::test_take_too_much": "clean",
        },
    ),
    _public(
        SourceArchive(
            "networkx", "networkx-3.5.tar.gz", "d4c6f9cf81f52d69230866796b82afbccdec3db7ae4fbd1b65ea750feed50037"
        ),
        "tests within the package, a large one",
        (),
        KnownBug("networkx/classes/function.py", "d = m / (n * (n - 1))", "d = m / (n * n)"),
        {
            "networkx/classes/tests/test_function.py::TestFunction::test_density": "impl_fix",
            "networkx/classes/tests/test_function.py::TestFunction::test_freeze": "clean",
        },
    ),
    _public(
        SourceArchive(
            "starlette", "starlette-1.10.0.tar.gz", "b8399098d4c1e3522734f7235dc79b1fc967f96cf139c81e0fa30479e0685f9b"
        ),
        "asynchronous, strict about everything",
        ("anyio", "trio", "httpx==0.28.1", "httpx2"),
        KnownBug("starlette/datastructures.py", 'splitter.whitespace = ","', 'splitter.whitespace = ";"'),
        {
            "tests/test_datastructures.py::test_csv": "impl_fix",
            "tests/test_datastructures.py::test_url": "clean",
        },
    ),
    _public(
        SourceArchive(
            "flask", "flask-3.1.3.tar.gz", "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb"
        ),
        "fixtures for every test that change the environment",
        (),
        KnownBug(
            "src/flask/helpers.py",
            'not in {"0", "false", "no"})\n\n\ndef get_load',
            'not in {"0", "false", "off"})\n\n\ndef get_load',
        ),
        {
            "tests/test_helpers.py::TestHelpers::test_get_debug_flag[No-False]": "impl_fix",
            "tests/test_helpers.py::TestHelpers::test_get_debug_flag[True-True]": "clean",
        },
    ),
    _public(
        SourceArchive(
            "httpx", "httpx-0.28.1.tar.gz", "75e98c5f16b0f35b567856f597f06ff2270a374470a5c2392242528e3e3e42fc"
        ),
        "ids that are parts of addresses",
        ("anyio", "trio", "uvicorn", "trustme", "chardet"),
        KnownBug("httpx/_utils.py", 'return "true"', 'return "yes"'),
        {
            "tests/models/test_queryparams.py::test_queryparam_types": "impl_fix",
            "tests/models/test_queryparams.py::test_queryparams[a=123&a=456&b=789]": "clean",
        },
    ),
    _public(
        SourceArchive(
            "pytest-django",
            "pytest_django-4.14.0.tar.gz",
            "26787dd3f422cfbab8f55b80a776e2edea7a11092cb74e960bef1312515708ef",
        ),
        "a plugin of pytest, and a database",
        ("django==5.2.8",),
        KnownBug(
            "pytest_django/asserts.py",
            'vars(MessagesTestMixin) if attr.startswith("assert")',
            'vars(MessagesTestMixin) if attr.startswith("asserts")',
        ),
        {
            "tests/test_asserts.py::test_django_asserts_available": "impl_fix",
            "tests/test_asserts.py::test_sanity": "clean",
        },
        arguments=(
            "--ds=pytest_django_test.settings_sqlite",
            "tests/test_asserts.py::test_django_asserts_available",
            "tests/test_asserts.py::test_sanity",
        ),
        environment={"SETUPTOOLS_SCM_PRETEND_VERSION": "4.14.0"},
    ),
    _public(
        SourceArchive(
            "packaging", "packaging-26.3.tar.gz", "94edc256424af38762eb31306eed28beb9f0efc50a8837492c9d6fd6004aed79"
        ),
        "thousands of parameters; pytest itself imports it",
        ("pretend==1.0.9", "hypothesis==6.170.15"),
        KnownBug("src/packaging/utils.py", 'while "--" in value:', 'while "---" in value:'),
        {
            "tests/test_utils.py::test_canonicalize_name[foo___bar-foo-bar]": "impl_fix",
            "tests/test_utils.py::test_canonicalize_name[foo-foo]": "clean",
        },
        arguments=("tests", "-k", "test_canonicalize_name and (foo___bar or foo-foo)"),
    ),
    _public(
        SourceArchive(
            "markupsafe", "markupsafe-3.0.4.tar.gz", "2e9ad7dd851bf45fab9f75cbff4cb493fee9979e8d8c7c9c3ee119022518edd6"
        ),
        "a compiled module, built anew in each copy",
        ("setuptools==80.9.0",),
        KnownBug("src/markupsafe/__init__.py", "return unescape(str(self))", "return str(self)"),
        {
            "tests/test_markupsafe.py::test_unescape[markupsafe._speedups]": "impl_fix",
            "tests/test_markupsafe.py::test_splitting[markupsafe._speedups]": "clean",
        },
        options=("--setup", "python setup.py --quiet build_ext --inplace"),
        is_quick=True,
    ),
    _public(
        SourceArchive(
            "simplejson", "simplejson-4.3.0.tar.gz", "ffe34ab51a0d37e6d1c661a5672df00d2d5e18804e38eac07abffb83fa5ec3d7"
        ),
        "classes of unittest within the package",
        ("setuptools==80.9.0",),
        KnownBug(
            "simplejson/errors.py",
            "colno = pos - doc.rindex(",
            "colno = pos + 1 - doc.rindex(",
        ),
        {
            "simplejson/tests/test_errors.py::TestErrors::test_decode_error": "impl_fix",
            "simplejson/tests/test_errors.py::TestErrors::test_string_keys_error": "clean",
        },
        environment={"DISABLE_SPEEDUPS": "1"},
    ),
)
