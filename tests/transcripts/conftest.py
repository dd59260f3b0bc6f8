"""Settings of the tests of transcripts."""

from __future__ import annotations

from hypothesis import settings

# How long one example takes says more about the machine than about the law.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
