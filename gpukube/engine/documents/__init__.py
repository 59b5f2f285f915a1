"""What the engine found and did, as plain data: one shape for tables, JSON, YAML and Markdown.

In scope: one maker per kind of document, the shapes they are held to, and the JSON Schemas made of the shapes.
Out of scope: how a document is shown (cli). Nothing secret is in one: requests carry no credentials and their
user data goes as a digest, native answers and kubeconfigs are not included.

Nothing is gathered here: who makes one kind of document imports its maker alone.
"""
