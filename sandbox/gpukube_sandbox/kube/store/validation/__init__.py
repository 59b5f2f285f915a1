"""Validation of objects by the API server; one module per topic, with the source of its rules."""
