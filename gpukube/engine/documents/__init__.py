"""What the engine found and did, as plain data: one shape for tables, JSON, YAML and Markdown.

In scope: one module per kind of document, the shapes, and the JSON Schemas generated from them. Out of scope: rendering
(cli). Documents contain no secrets: requests carry no credentials, user data is replaced by a digest, and native
answers and kubeconfigs are not included.

This package re-exports nothing, so that a caller imports only the document it needs.
"""
