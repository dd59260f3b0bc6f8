"""The page of a sweep: a folder of static files that anybody can open without a network."""
