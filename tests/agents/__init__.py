"""Tests of agents: their prompts, their submitted work, the offline agent and the integrator."""
