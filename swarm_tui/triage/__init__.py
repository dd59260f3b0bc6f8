"""Triage: the fixes of an integrated branch, the verdicts on them, what they would give, and making it so."""
