"""The text of specs: files, YAML with positions, environment variables."""
