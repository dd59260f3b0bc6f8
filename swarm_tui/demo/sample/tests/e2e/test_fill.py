"""Filling the shelf: add, add more, import."""

from swarm_tui.e2e import E2eSession, expect


def test_add_puts_it_on_the_shelf(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Put a bag of flour on the shelf.
        larder add flour 1kg --aisle baking
    """)
    result = e2e.run("larder add flour 1kg --aisle baking", comment="Put a bag of flour on the shelf")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("1 kg of flour in the larder")


def test_add_with_a_date(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Milk does not keep: say until when.
        larder add milk 1l --aisle dairy --best-before 2026-03-04
    """)
    result = e2e.run("larder add milk 1l --aisle dairy --best-before 2026-03-04", comment="Say until when")
    expect(result).to_succeed()


def test_add_tea_for_a_year(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Tea keeps longer, but not for ever.
        larder add tea 20 --aisle drinks --expires 2027-01-31
    """)
    result = e2e.run("larder add tea 20 --aisle drinks --expires 2027-01-31", comment="Tea keeps longer")
    expect(result).to_succeed()
    expect(e2e.run("larder list").stdout).to_contain("best before 2027-01-31")


def test_adding_more_adds_up(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # More of what is there already is added up.
        larder add flour 500g
    """)
    e2e.run("larder add flour 1kg --aisle baking", comment="One bag is there already")
    result = e2e.run("larder add flour 500g", comment="Half a bag more")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("1.5 kg of flour")


def test_add_reads_a_decimal_comma(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # People write amounts as they learned it at school.
        larder add sugar 1,5kg --aisle baking
    """)
    result = e2e.run("larder add sugar 1,5kg --aisle baking", comment="With a comma, as in most of Europe")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("1.5 kg of sugar")


def test_import_a_delivery(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # What came with the last delivery, all at once. Tins say only a month.
        cat > delivery.csv <<'END'
        name,amount,aisle,best_before
        chickpeas,4,tins,2027-05
        rice,2kg,dry,2028-01-01
        END
        larder import delivery.csv
    """)
    e2e.run(
        "cat > delivery.csv <<'END'\n"
        "name,amount,aisle,best_before\n"
        "chickpeas,4,tins,2027-05\n"
        "rice,2kg,dry,2028-01-01\n"
        "END",
        comment="What came with the last delivery",
    )
    result = e2e.run("larder import delivery.csv", comment="All at once")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("2 items imported")
