"""The offline agent: plays a recorded piece of work on a real checkout, so that all around agents can be tried."""
