"""Transcripts of agents: read files of any size by offset, format records as lines, merge several transcripts."""
