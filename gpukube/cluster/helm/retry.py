"""Helm and a cluster that answers late, or takes its token no longer: it is asked again.

In scope: how often. Out of scope: how Helm is run (embedded, cli), when (release.manager).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import AccessError, ClusterSlow

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.helm.engine import HelmAnswer

_TRIES: Final = 3
_REFUSED: Final = "kube-unauthorized"
_PAUSE_S: Final = 1.0
"""Helm itself has waited for ten seconds before: a moment for an API server that restarts."""


def run_with_retries(
    ask: Callable[[], HelmAnswer], pause: Callable[[float], None], renew: Callable[[], object]
) -> HelmAnswer:
    """Ask Helm for a change; again where it gave up on reaching a cluster that only answers late, or its token ran out.

    Args:
        ask: Runs Helm once, with a kubeconfig of that run's own: Helm's process takes it away in the end.
        pause: Waits some seconds.
        renew: Called before Helm is asked once more after its credentials were refused; raises what is wrong with them.

    Raises:
        HelmError: As Helm; ClusterError: the cluster is out of reach.
    """
    try:
        return _retry_when_slow(ask, pause)
    except AccessError as error:
        if error.diagnostics[0].code != _REFUSED:
            raise
    # What Helm had begun it finds again, as after any end in the middle: as a change that is to be repaired first.
    renew()
    return _retry_when_slow(ask, pause)


def _retry_when_slow(ask: Callable[[], HelmAnswer], pause: Callable[[float], None]) -> HelmAnswer:
    # Helm gives up on the first slow answer; nothing was changed then, so the same call is safe to repeat.
    for _ in range(_TRIES - 1):
        try:
            return ask()
        except ClusterSlow:  # somebody has taken the connection, and was busy for ten seconds
            pause(_PAUSE_S)
    return ask()
