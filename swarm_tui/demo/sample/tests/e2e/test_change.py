"""Changing one's mind: rename, drop, undo."""

from swarm_tui.e2e import E2eSession, expect


def test_rename_keeps_everything(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # It was oat milk.
        larder rename milk oat-milk
    """)
    e2e.run("larder add milk 1l --best-before 2026-03-04", comment="Milk, until Wednesday")
    result = e2e.run("larder rename milk oat-milk", comment="It was oat milk")
    expect(result).to_succeed()
    expect(e2e.run("larder list").stdout).to_match(r"oat-milk .* best before 2026-03-04")


def test_remove_forgets_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Forget about the salt.
        larder remove salt
    """)
    e2e.run("larder add salt 500g", comment="Salt")
    result = e2e.run("larder remove salt", comment="Forget about the salt")
    expect(result).to_succeed()
    expect(e2e.run("larder list", comment="It is gone").stdout).not_to_contain("salt")


def test_undo_takes_it_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # That was a mistake.
        larder undo
    """)
    e2e.run("larder add flour 1kg", comment="A bag of flour")
    e2e.run("larder drop flour", comment="Gone by mistake")
    result = e2e.run("larder undo", comment="That was a mistake")
    expect(result).to_succeed()
