"""The shapes of all documents, as types: the type checker holds the makers to them, the JSON Schemas are made of them.

A text below a key is that key's description in the schema (`python -m tools.document_schemas` writes them). From
`schemaVersion` 1 on the meaning of a key never changes and no key goes away; new ones may come.
"""
