"""Watch agents of mngr that no sweep started, and record them in a journal for the room."""
