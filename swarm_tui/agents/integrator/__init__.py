"""The built-in integrator: from many agents' branches to one that a person can review, without a model.

`inputs` says what there is, `branches` reads it from git, `kinds`, `alike` and `ranking` decide (pure),
`effects` measures what each fix does, `weave` makes the commits, `program` runs all of it as a mngr agent.
"""
