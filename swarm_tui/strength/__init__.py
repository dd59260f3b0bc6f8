"""Test strength: whether a test that a sweep changed still detects the same faults as before.

`source` finds the tests that differ between two versions of their files, `signs` and `looser` compare their assertions,
and `mutants` creates small faults in the program, in groups so that no test executes two faults. `measure` runs the old
and the new tests on the faulty program, `review` does this for a branch under review, and `turn` lets only one process
per review measure.
"""
