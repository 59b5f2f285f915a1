"""Helm's first look at a cluster that answers late: it is asked again, for it had changed nothing.

Lives here: how often. Must not live here: how Helm is run (embedded, cli), when (release.manager).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import ClusterSlow

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.helm.engine import HelmAnswer

_TRIES: Final = 3
_PAUSE_S: Final = 1.0
"""Helm itself has waited for ten seconds before: a moment for an API server that restarts."""


def ask_reached(ask: Callable[[], HelmAnswer], pause: Callable[[float], None]) -> HelmAnswer:
    """Ask Helm for a change; again where it gave up on reaching a cluster that only answers late.

    Args:
        ask: Runs Helm once, with a kubeconfig of that run's own: Helm's process takes it away in the end.
        pause: Waits some seconds.

    Raises:
        HelmError: As Helm; ClusterError: the cluster is out of reach.
    """
    # Helm gives up on the first slow answer; nothing was changed then, so the same call is safe to repeat.
    for _ in range(_TRIES - 1):
        try:
            return ask()
        except ClusterSlow:  # somebody has taken the connection, and was busy for ten seconds
            pause(_PAUSE_S)
    return ask()
