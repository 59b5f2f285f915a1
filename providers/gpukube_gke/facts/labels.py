"""Node labels that GKE writes itself.

Source: GKE cluster autoscaler, labels.
"""

from __future__ import annotations

from typing import Final

SYSTEM_LABELS: Final = frozenset(
    f"cloud.google.com/{name}"
    for name in (
        "gke-accelerator",
        "gke-accelerator-count",
        "gke-gpu-partition-size",
        "gke-gpu-sharing-strategy",
        "gke-max-shared-clients-per-gpu",
        "gke-gpu-driver-version",
        "gke-nodepool",
        "gke-spot",
        "gke-preemptible",
        "gke-provisioning",
        "gke-flex-start",
        "gke-placement-group",
        "machine-family",
        "gke-os-distribution",
        "gke-max-pods-per-node",
    )
)
