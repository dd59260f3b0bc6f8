#!/bin/sh
# larder, block by block. Today is Monday, the 2nd of March 2026.

# ── Begin ──

# What can it do?
larder --help

# A new larder has nothing in it.
larder list

# ── Fill the shelf ──

# Put a bag of flour on the shelf.
larder add flour 1kg --aisle baking

# Milk does not keep: say until when.
larder add milk 1l --aisle dairy --best-before 2026-03-04

# Tea keeps longer, but not for ever.
larder add tea 20 --aisle drinks --expires 2027-01-31

# More of what is there already is added up.
larder add flour 500g

# People write amounts as they learned it at school.
larder add sugar 1,5kg --aisle baking

# What came with the last delivery, all at once. Tins say only a month.
cat > delivery.csv <<'END'
name,amount,aisle,best_before
chickpeas,4,tins,2027-05
rice,2kg,dry,2028-01-01
END
larder import delivery.csv

# ── Look around ──

# What do we have?
larder list

# Only what belongs into the fridge.
larder list --aisle dairy

# Was there any of that left?
larder find FLOUR

# What has to be eaten within a week, today and the last day included?
larder soon

# And within three days?
larder soon --days 3

# ── Use things up ──

# Take something off the shelf.
larder use flour 200g

# Nobody can take more than there is.
larder use flour 5kg

# Cook, and let the recipe do the counting.
cat > pancakes.txt <<'END'
250g flour  # sieved
500ml milk
END
larder cook pancakes.txt

# ── Change your mind ──

# It was oat milk.
larder rename milk oat-milk

# Forget about the salt.
larder remove salt

# That was a mistake.
larder undo

# ── Go shopping ──

# Always keep some of these, and say what to buy.
larder add butter 100g --aisle dairy --keep 250g
larder add yeast 1 --aisle baking --keep 3
larder shop

# ── Share it ──

# Open it in a spreadsheet.
larder export > larder.csv

# Let the family see it.
larder share "$LARDER_SHARE"
