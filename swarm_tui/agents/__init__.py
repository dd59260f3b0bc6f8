"""The agents: what they are asked, what they hand in, how that is judged, and the offline agent that plays records."""
