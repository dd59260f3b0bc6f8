"""Agents: their kinds, prompts and tasks, what they hand in and how that is judged, and the packaged programs."""
