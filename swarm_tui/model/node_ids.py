"""Takes pytest's ids of tests apart."""

from __future__ import annotations


def split_node_id(test: str) -> tuple[str, str]:
    """Return where a test stands, and its name with its parameters, which may hold :: and brackets too.

    A folder's name may hold brackets: what stands before the first bracket is split, if it has a :: at all.
    """
    head, bracket, parameters = test.partition("[")
    if bracket and "::" in head:
        place, _, name = head.rpartition("::")
        return place, f"{name}[{parameters}"
    place, _, name = test.rpartition("::")
    return place, name


def name_of_test(test: str) -> str:
    return split_node_id(test)[1]
