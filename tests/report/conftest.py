"""Leaves out the tests that need a browser, unless they are asked for by name: `-m browser`."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect rather than skip: a machine without Chromium was never asked for these."""
    if "browser" in config.getoption("-m"):
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("browser")]
        config.hook.pytest_deselected(items=left_out)
