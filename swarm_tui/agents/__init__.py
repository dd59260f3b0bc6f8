"""Agent types, prompts and tasks, results of submitted work, and the programs that are copied to hosts."""
