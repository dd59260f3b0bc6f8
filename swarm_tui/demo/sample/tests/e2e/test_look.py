"""Looking around: list, find, soon."""

from swarm_tui.e2e import E2eSession, expect


def test_list_shows_what_we_have(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What do we have?
        larder list
    """)
    result = e2e.run("larder list", comment="What do we have?")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("flour")


def test_list_marks_what_spoils(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What do we have?
        larder list
    """)
    e2e.run("larder add yoghurt 4 --best-before 2026-03-02", comment="Four yoghurts, to be eaten today")
    e2e.run("larder add honey 1", comment="Honey keeps for ever")
    result = e2e.run("larder list", comment="What do we have?")
    expect(result.stdout).to_match(r"yoghurt +! +4")
    expect(result.stdout).to_match(r"honey +1 ")


def test_list_aligns_wide_names(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What do we have?
        larder list
    """)
    e2e.run("larder add 蜂蜜 1", comment="Honey again, from far away")
    e2e.run("larder add rice 2", comment="And rice")
    result = e2e.run("larder list", comment="The amounts stand below each other")
    expect(result.stdout).to_contain("rice" + " " * 10 + "2")
    expect(result.stdout).to_contain("蜂蜜" + " " * 10 + "1")


def test_list_of_one_aisle(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Only what belongs into the fridge.
        larder list --aisle dairy
    """)
    e2e.run("larder add milk 1l --aisle dairy", comment="Something for the fridge")
    e2e.run("larder add flour 1kg --aisle baking", comment="Something for the shelf")
    result = e2e.run("larder list --aisle dairy", comment="Only what belongs into the fridge")
    expect(result).to_succeed()


def test_find_ignores_capitals(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Was there any of that left?
        larder find FLOUR
    """)
    e2e.run("larder add flour 1kg", comment="There is some")
    result = e2e.run("larder find FLOUR", comment="Was there any of that left?")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("1 kg of flour\n")


def test_soon_includes_today(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What has to be eaten within a week, today and the last day included?
        larder soon
    """)
    e2e.run("larder add yoghurt 4 --best-before 2026-03-02", comment="To be eaten today")
    e2e.run("larder add rice 2kg --best-before 2028-01-01", comment="There is time for this")
    result = e2e.run("larder soon", comment="What has to be eaten within a week?")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("2026-03-02  4 of yoghurt")
    expect(result.stdout).not_to_contain("rice")


def test_soon_includes_the_last_day(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # And within three days?
        larder soon --days 3
    """)
    e2e.run("larder add cream 200ml --best-before 2026-03-05", comment="Good until the third day")
    e2e.run("larder add cheese 300g --best-before 2026-03-06", comment="Good until the fourth")
    result = e2e.run("larder soon --days 3", comment="And within three days?")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("2026-03-05  200 ml of cream\n")
