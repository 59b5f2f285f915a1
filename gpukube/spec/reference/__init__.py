"""The format as such: its JSON Schema, its fields, and a page for each."""
