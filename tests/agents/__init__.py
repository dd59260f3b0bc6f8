"""Tests of the agents: what they are asked, what they hand in, the offline agent, the integrator."""
