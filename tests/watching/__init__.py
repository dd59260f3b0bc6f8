"""Tests of watching agents that no sweep made."""
