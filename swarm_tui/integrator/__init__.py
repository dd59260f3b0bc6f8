"""The built-in integrator: combines many agents' branches into one branch for review, without a model.

`inputs` is the file that it reads, and `branches` reads the agents' commits from git. `duplicates` and `ranking` are
pure decisions. `measure` runs tests with each fix, `build` creates the commits, and `tip` runs all tests on the result.
`integrator` runs these steps in order. `submission` checks and measures a branch that a coding agent submitted instead.
`report` composes the report, and `program` runs everything as a mngr agent or as a plain process.
"""
