"""Teeth: whether a test that a sweep changed still notices what it noticed before.

`sources` finds the tests that differ between two versions of their files, `signs` compares what they check,
`mutants` makes small faults in the program (all three pure), `rounds` puts faults together that no test meets twice,
and `measure` runs the tests as they were and as they are on the program with these faults.
"""
