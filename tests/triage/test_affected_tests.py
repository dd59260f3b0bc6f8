"""Which tests a fix concerns: rather one too many than one too few."""

from __future__ import annotations

import pytest

from swarm_tui.triage.verify import affected_test_files, imported_modules, is_test_file, module_names

IMPORTS = {
    "tests/test_copy.py": frozenset({"larder.copy", "larder"}),
    "tests/test_list.py": frozenset({"larder.listing.columns"}),
    "tests/unit/test_plain.py": frozenset({"os"}),
}


@pytest.mark.parametrize(
    ("changed", "files"),
    [
        ("src/larder/copy.py", {"tests/test_copy.py"}),
        ("larder/listing/columns.py", {"tests/test_copy.py", "tests/test_list.py"}),
        ("larder/listing/__init__.py", {"tests/test_copy.py", "tests/test_list.py"}),
        ("tests/unit/test_plain.py", {"tests/unit/test_plain.py"}),
        ("tests/unit/conftest.py", {"tests/unit/test_plain.py"}),
        ("tests/conftest.py", set(IMPORTS)),
        ("README.md", set()),
    ],
)
def test_a_change_concerns_what_imports_it_or_stands_below_it(changed: str, files: set[str]) -> None:
    assert affected_test_files([changed], IMPORTS) == files


def test_imports_are_read_from_the_source() -> None:
    source = b"import a.b as c\nfrom d.e import f\nfrom . import g\ndef later():\n    import h\n"
    assert imported_modules(source) == {"a.b", "d.e", "d.e.f", "h"}


@pytest.mark.parametrize("source", [b"def broken(:", b"\x00", b"(" * 5000, b"#" * 2_000_000])
def test_what_is_no_python_imports_nothing(source: bytes) -> None:
    assert imported_modules(source) == frozenset()


def test_a_module_may_be_imported_by_any_end_of_its_path() -> None:
    assert module_names("src/larder/__init__.py") == ("src.larder", "larder")
    assert module_names("data.json") == ()
    assert is_test_file("a/test_x.py")
    assert is_test_file("a/x_test.py")
    assert not is_test_file("a/testing.py")
