"""Pure drawing: what the room knows goes in, lines of styled text come out. No widget, no clock, no disk."""
