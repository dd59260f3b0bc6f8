"""Where agents run, and how their files, processes and terminals are reached: one protocol, one module a place."""
