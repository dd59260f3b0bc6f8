"""The widgets: each holds cursor, scroll and filter only; the state of the sweep is in the store."""
