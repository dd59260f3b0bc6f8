"""Running a project's tests on any tree of its repository: the settings, the scratch copies, and the cached results.

`settings` says how a project's tests are run, `results` keeps what they came to by tree, `copies` runs them. The
integrator and the merge view share all three, so that neither runs again what the other has run in the same way.
"""
