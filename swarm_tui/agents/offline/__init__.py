"""The offline agent: replays recorded work in a real checkout, to test everything except the model."""
