"""Tests of watching agents that no sweep started."""
