"""Names derived from tests are unique, safe, and the same every time."""

import re

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.spec import derive_tests, slug_of


@given(st.lists(st.text(max_size=80), max_size=30))
def test_derived_names_are_unique_and_reproducible(tests: list[str]) -> None:
    collected = [(test, "t.py", 1) for test in tests]
    derived = derive_tests("20261118-061200", collected)
    assert derived == derive_tests("20261118-061200", collected)
    assert len({test.agent for test in derived}) == len(tests)
    assert len({test.branch for test in derived}) == len(tests)
    for test in derived:
        assert re.fullmatch(r"swarm-20261118-061200-[a-z0-9]+(-[a-z0-9]+)*", test.agent)
        assert test.branch.rsplit("/", 1)[1] not in ("integrated", "integrator", "reviewed")


def test_slug_resembles_test_name() -> None:
    assert slug_of("e2e/test_copy.py::TestCopy::test_copy_between_hosts[a-b]") == "test-copy-between-hosts-a-b"
    assert slug_of("t.py::test[$(touch x)]") == "test-touch-x"
    assert slug_of("t.py::[]") == "test"
    assert slug_of("t.py::test_scope[std::vector]") == "test-scope-std-vector"
    assert slug_of("odd[1]/t.py::test_a") == "test-a"
