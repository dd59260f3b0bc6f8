"""The tests that a fix may affect: in doubt, a test is included."""

from __future__ import annotations

import pytest

from swarm_tui.review.tests import affected_test_files, imported_modules, is_test_file, module_names

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
def test_change_affects_importers_and_tests_below_conftest(changed: str, files: set[str]) -> None:
    assert affected_test_files([changed], IMPORTS) == files


def test_imports_are_read_from_source() -> None:
    source = b"import a.b as c\nfrom d.e import f\nfrom . import g\ndef later():\n    import h\n"
    assert imported_modules(source) == {"a.b", "d.e", "d.e.f", "h"}


@pytest.mark.parametrize("source", [b"def broken(:", b"\x00", b"(" * 5000, b"#" * 2_000_000])
def test_invalid_python_imports_nothing(source: bytes) -> None:
    assert imported_modules(source) == frozenset()


def test_module_has_name_for_each_path_suffix() -> None:
    assert module_names("src/larder/__init__.py") == ("src.larder", "larder")
    assert module_names("data.json") == ()
    assert is_test_file("a/test_x.py")
    assert is_test_file("a/x_test.py")
    assert not is_test_file("a/testing.py")
