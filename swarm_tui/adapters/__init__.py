"""The adapters: the only code that starts a process or opens a socket, one module for each outside program."""
