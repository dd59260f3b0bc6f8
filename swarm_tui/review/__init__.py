"""Review of an integrated branch: its fixes, the verdicts on them, previews of the plan, and applying it."""
