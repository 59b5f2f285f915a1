"""Command signatures and help texts. The bodies are imported when a command runs."""
