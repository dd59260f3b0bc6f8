"""The built-in integrator: from many agents' branches to one that a person can review, without a model.

`inputs` is the file it reads, `branches` reads the commits from git, `classify`, `duplicates` and `ranking` decide
(pure), `measure` runs tests with each fix, `build_branch` makes the commits, `report` composes the outcome, and
`program` runs all of it as a mngr agent.
"""
