"""Nimbus, a cloud that does not exist; the entry point `nimbus` of the group `gpukube.providers`."""

from gpukube_nimbus.provider import NimbusProvider

__all__ = ["NimbusProvider"]
