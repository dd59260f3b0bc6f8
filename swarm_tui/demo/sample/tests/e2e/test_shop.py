"""Going shopping."""

from swarm_tui.e2e import E2eSession, expect


def test_shop_goes_aisle_by_aisle(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Always keep some of these, and say what to buy.
        larder add butter 100g --aisle dairy --keep 250g
        larder add yeast 1 --aisle baking --keep 3
        larder shop
    """)
    e2e.run("larder add butter 100g --aisle dairy --keep 250g", comment="Always keep some butter")
    e2e.run("larder add yeast 1 --aisle baking --keep 3", comment="and yeast")
    result = e2e.run("larder shop", comment="What to buy?")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("baking:\n  [ ] 2 yeast\ndairy:\n  [ ] 150 g butter\n")
