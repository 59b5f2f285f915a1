"""Human-readable descriptions of patterns.

In scope: a sentence for every pattern of the models. Out of scope: the patterns themselves, which are next to their
fields; sentences for one cloud's patterns (its provider's `spec`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.spec.base import DURATION
from gpukube.spec.clusters import CLOUDS, CLUSTER_KEY
from gpukube.spec.model import CFS_PERIOD, KUBERNETES_VERSION, LABEL_VALUE, LOG_SIZE, PERCENT, SYSCTL

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMATS: Final[Mapping[str, str]] = {
    LABEL_VALUE: 'expected at most 63 letters, digits, "-", "_" or ".", starting and ending with a letter or digit',
    CLUSTER_KEY: 'expected at most 63 letters, digits, "-" or "_", starting and ending with a letter or digit',
    KUBERNETES_VERSION: "expected a version such as 1.34, 1.34.2 or 1.34.1-gke.1829000",
    PERCENT: "expected a number of nodes or a percentage such as 33%",
    SYSCTL: "expected the name of a sysctl such as net.core.somaxconn",
    CFS_PERIOD: "expected a number with us, ms or s",
    LOG_SIZE: "expected a size such as 50Mi",
    DURATION: "expected a number with s, m, h or d",
    **{pattern: sentence for cloud in CLOUDS.values() for pattern, sentence in cloud.formats.items()},
}
"""Pattern -> its description."""
