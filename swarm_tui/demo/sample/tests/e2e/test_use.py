"""Using things up: use, cook."""

from swarm_tui.e2e import E2eSession, expect

PANCAKES = "cat > pancakes.txt <<'END'\n250g flour  # sieved\n500ml milk\nEND"


def test_use_takes_some(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Take something off the shelf.
        larder use flour 200g
    """)
    e2e.run("larder add flour 500g", comment="Half a bag")
    result = e2e.run("larder use flour 200g", comment="Take something off the shelf")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("left: 300 g")


def test_use_more_than_there_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Nobody can take more than there is.
        larder use flour 5kg
    """)
    e2e.run("larder add flour 1kg", comment="One bag")
    result = e2e.run("larder use flour 5kg", comment="Five would be needed")
    expect(result).to_exit_with(1)
    expect(result.stderr).to_contain("there is only 1 kg of flour")
    expect(e2e.run("larder find flour", comment="It is all still there").stdout).to_contain("1 kg of flour")


def test_cook_takes_the_ingredients(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Cook, and let the recipe do the counting.
        cat > pancakes.txt <<'END'
        250g flour  # sieved
        500ml milk
        END
        larder cook pancakes.txt
    """)
    e2e.run("larder add flour 1kg && larder add milk 1l", comment="Enough for pancakes")
    e2e.run(PANCAKES, comment="The recipe")
    result = e2e.run("larder cook pancakes.txt", comment="Let the recipe do the counting")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("750 g of flour left\n500 ml of milk left\n")


def test_cook_says_what_is_missing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Cook, and let the recipe do the counting.
        cat > pancakes.txt <<'END'
        250g flour  # sieved
        500ml milk
        END
        larder cook pancakes.txt
    """)
    e2e.run("larder add flour 1kg && larder add milk 300ml", comment="Not enough milk")
    e2e.run(PANCAKES, comment="The recipe")
    result = e2e.run("larder cook pancakes.txt", comment="It says what to buy")
    expect(result).to_fail()
    expect(result.stderr).to_contain("not enough milk")
