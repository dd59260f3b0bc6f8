"""Sharing the shelf: a spreadsheet, the family's folder."""

from swarm_tui.e2e import E2eSession, expect


def test_export_quotes_names(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Open it in a spreadsheet.
        larder export > larder.csv
    """)
    e2e.run("larder add 'olives, black' 300g --aisle tins", comment="A name with a comma")
    result = e2e.run("larder export > larder.csv", comment="Open it in a spreadsheet")
    expect(result).to_succeed()
    expect(e2e.run("cat larder.csv").stdout).to_contain('"olives, black",300 g,tins,')


def test_share_with_the_family(e2e: E2eSession, family_share: str) -> None:
    e2e.write_tutorial_block("""
        # Let the family see it.
        larder share "$LARDER_SHARE"
    """)
    e2e.run("larder add flour 1kg", comment="Something to see")
    result = e2e.run(
        'larder share "$LARDER_SHARE"', comment="Let the family see it", env={"LARDER_SHARE": family_share}
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("1 items shared")


def test_share_replaces_the_older_copy(e2e: E2eSession, family_share: str) -> None:
    e2e.write_tutorial_block("""
        # Let the family see it.
        larder share "$LARDER_SHARE"
    """)
    for item in ("flour", "milk"):
        e2e.run(f"larder add {item}", comment="One more")
        result = e2e.run('larder share "$LARDER_SHARE"', env={"LARDER_SHARE": family_share})
        expect(result).to_succeed()
    expect(result.stdout).to_contain("2 items shared")


def test_share_of_an_empty_larder(e2e: E2eSession, family_share: str) -> None:
    e2e.write_tutorial_block("""
        # Let the family see it.
        larder share "$LARDER_SHARE"
    """)
    result = e2e.run('larder share "$LARDER_SHARE"', comment="Nothing to see", env={"LARDER_SHARE": family_share})
    expect(result).to_exit_with(1)
    expect(result.stderr).to_contain("empty")
