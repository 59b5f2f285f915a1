"""Emulated clouds on loopback: control planes with the real wire protocols.

In scope: wire formats, service rules, and lifecycles of the clouds, a Kubernetes API, a clock that can be sped up,
faults. Out of scope: code and data of gpukube, so that a mistake in gpukube cannot hide in the emulator. This file
imports nothing, because `gpukube_sandbox.guard` must load fast.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
