"""Test strength: whether a test that a sweep changed still detects the same faults as before.

`sources` finds the tests that differ between two versions of their files, `signs` compares their assertions, and
`mutants` creates small faults in the program; all three are pure. `rounds` groups mutants so that no test executes two
of them. `measure` runs the old and the new tests on the mutated program.
"""
