"""Pure functions that draw data as lines of styled text. They use no widgets, no clock and no files."""
