"""User data of a node group's launch template: gpukube's settings next to content of others."""
