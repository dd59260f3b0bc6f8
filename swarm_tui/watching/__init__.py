"""Watches agents of mngr that no sweep made: what they do is written down as a journal, which the room shows."""
