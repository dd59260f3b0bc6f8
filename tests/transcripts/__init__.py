"""Transcripts: reading by offset, records, layout, search."""
