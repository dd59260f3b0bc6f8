"""The page of a sweep: one folder of static files that can be sent to anybody and opened without a network."""
