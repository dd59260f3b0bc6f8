"""The real Codex and opencode, with a scripted model that implements OpenAI's two APIs."""
