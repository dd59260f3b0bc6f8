"""Widgets. They hold only cursor, scroll position and filter. The state of the sweep is in the store."""
