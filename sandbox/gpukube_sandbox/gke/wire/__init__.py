"""Wire formats: names, calls, responses, tokens. Nothing here depends on the service."""
