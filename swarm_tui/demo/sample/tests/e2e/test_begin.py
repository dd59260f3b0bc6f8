"""First steps: the help, an empty larder."""

from swarm_tui.e2e import E2eSession, expect


def test_help_lists_the_commands(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What can it do?
        larder --help
    """)
    result = e2e.run("larder --help", comment="What can it do?")
    expect(result).to_succeed()
    for command in ("add", "list", "use", "soon", "shop", "cook", "undo"):
        expect(result.stdout).to_contain(f"\n    {command} ")


def test_a_new_larder_is_empty(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A new larder has nothing in it.
        larder list
    """)
    result = e2e.run("larder list", comment="A new larder has nothing in it")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("the larder is empty")
