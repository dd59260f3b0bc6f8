"""Data types that all packages share. They are frozen, and nothing here reads or writes files or starts processes."""
