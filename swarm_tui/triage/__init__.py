"""Triage: the fixes of an integrated branch, the verdicts on them, what they lead to, and applying them."""
