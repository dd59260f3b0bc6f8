"""Runs a project's tests on any tree of its repository.

`settings` describes how to run a project's tests, `results` caches results by tree, and `copies` runs the tests. The
integrator and the review share the cache, so that neither repeats runs of the other.
"""
