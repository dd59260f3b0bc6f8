"""What the records of a sweep tell together: who wants a person, what fails alike, when it ends. Pure."""
