"""Helm's first look at a cluster that answers late: it is asked again, for it had changed nothing.

Lives here: telling a late answer from none. Must not live here: how Helm is run (helm_sdk, helm_cli), when (keeper).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.helm import Engine, HelmAnswer, HelmJob

__all__ = ["upgrade_reached"]

_LATE: Final = "TLS handshake timeout"
"""Somebody has taken the connection, and was busy for ten seconds: Go's limit, which Helm does not let us set."""
_TRIES: Final = 3
_PAUSE_S: Final = 1.0


def upgrade_reached(engine: Engine, job: HelmJob, pause: Callable[[float], None]) -> HelmAnswer:
    """Upgrade; again where Helm gave up on reaching a cluster that only answers late.

    Raises:
        HelmError: As the engine; ClusterError: the cluster is out of reach.
    """
    for _ in range(_TRIES - 1):
        try:
            return engine.upgrade(job)
        except ClusterError as error:
            found = error.diagnostics[0]
            if found.code != "cluster-unreachable" or _LATE not in found.why:
                raise
            pause(_PAUSE_S)
    return engine.upgrade(job)
