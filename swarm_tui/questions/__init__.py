"""Questions of agents: groups, the inbox, and deferred items."""
