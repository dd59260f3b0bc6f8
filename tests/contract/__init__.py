"""One contract for all agent types: the same situations, each with the real program and a scripted model."""
