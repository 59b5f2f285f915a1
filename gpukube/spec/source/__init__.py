"""The text of specs: files, YAML with positions, variables of the environment."""
