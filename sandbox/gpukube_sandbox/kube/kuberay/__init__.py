"""KubeRay's operator, imitated: definitions of its types, the objects that it makes, and its controller."""
