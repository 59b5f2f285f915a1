"""The clouds on loopback: emulated control planes that speak the real wire protocols.

Lives below here: wire formats, service rules and life cycles of the clouds, a Kubernetes API, a clock that can be sped
up, faults. Out of scope: anything of gpukube's other rooms (their data neither), so that a mistake in gpukube
cannot hide in the emulator. Nothing is imported by this file: `gpukube_sandbox.guard` must load in a moment.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
