"""The widgets: each holds cursor, scroll and filter only; what the sweep is, it asks the store."""
