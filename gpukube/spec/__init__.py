"""The spec: from YAML text to frozen models, with a file position for every complaint.

In scope: reading YAML, the models, the checks that hold on every cloud, the JSON Schema. Out of scope: anything one
cloud alone knows, the GPU catalog, network, clock. This is the only room that may import pydantic and PyYAML; import
its modules directly (nothing is loaded by importing the package).
"""
