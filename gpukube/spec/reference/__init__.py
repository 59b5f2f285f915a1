"""The spec's format: its JSON Schema, its fields, and a page for each."""
