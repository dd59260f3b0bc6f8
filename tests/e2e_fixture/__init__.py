"""Tests of the fixture `e2e` itself."""
