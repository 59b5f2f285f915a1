"""Human-readable rendering of documents, one module per kind. Pure: no stream; the width is an argument."""
