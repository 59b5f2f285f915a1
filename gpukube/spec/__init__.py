"""The spec: from YAML text to frozen models, with a file position for every finding.

In scope: reading YAML, the models, checks for every cloud, the JSON Schema. Out of scope: anything specific to one
cloud, the GPU catalog, network, clock. Only this package may import pydantic and PyYAML; import its modules directly
(importing the package loads nothing).
"""
