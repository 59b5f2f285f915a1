"""The shapes of all documents, as types: makers are type-checked against them, JSON Schemas generated from them.

The text below a key is its description in the schema (`python -m tools.document_schemas` writes them). From
`schemaVersion` 1 on, the meaning of a key never changes and no key is removed; new ones may be added.
"""
