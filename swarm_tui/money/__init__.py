"""Cost: budget, estimate and forecast."""
