"""Emulates KubeRay's operator: its type definitions, the objects that it creates, and its controller."""
