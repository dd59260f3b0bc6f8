"""Tests of the whole program as people use it; each cites its block of tutorial/tutorial.sh."""
