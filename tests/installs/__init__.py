"""What people install: the built package, by each way that people take, on each Python that is supported."""
