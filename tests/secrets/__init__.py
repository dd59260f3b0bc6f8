"""How much of what others know as secrets is masked, and how much of what is none."""
