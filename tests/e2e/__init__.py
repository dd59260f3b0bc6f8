"""Tests of the whole program; each cites a block of tutorial/tutorial.sh."""
