"""Repeats Helm runs if a cluster answers late or no longer accepts the token.

In scope: how often. Out of scope: how Helm runs (embedded, cli), when (release.manager).
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
"""Helm itself has waited ten seconds before; this adds a moment for an API server that restarts."""


def run_with_retries(
    run: Callable[[], HelmAnswer], pause: Callable[[float], None], renew: Callable[[], object]
) -> HelmAnswer:
    """Run Helm; repeat if it gave up on a cluster that only answers late, or if its token expired.

    Args:
        run: Runs Helm once, with a kubeconfig of its own: Helm's process deletes it at the end.
        pause: Waits some seconds.
        renew: Called before the repetition after refused credentials; raises if there are no new ones.

    Raises:
        HelmError: Raised by Helm; ClusterError: the cluster is unreachable.
    """
    try:
        return _retry_when_slow(run, pause)
    except AccessError as error:
        if error.diagnostics[0].code != _REFUSED:
            raise
    # Helm finds what it had begun as it does after any interruption: as a change to repair first.
    renew()
    return _retry_when_slow(run, pause)


def _retry_when_slow(run: Callable[[], HelmAnswer], pause: Callable[[float], None]) -> HelmAnswer:
    # Helm gives up on the first slow response; nothing was changed then, so the same call is safe to repeat.
    for _ in range(_TRIES - 1):
        try:
            return run()
        except ClusterSlow:  # the server accepted the connection, and was busy for ten seconds
            pause(_PAUSE_S)
    return run()
