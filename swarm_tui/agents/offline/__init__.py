"""The offline agent: plays recorded work on a real checkout, to try everything but the model."""
