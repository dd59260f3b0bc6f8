"""Transcripts of agents: files of any size read by byte offset, records made into lines, many merged into one tail."""
