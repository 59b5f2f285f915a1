"""GKE clusters in a kubeconfig.

In scope: the entries. Out of scope: Google libraries, which writing the file does not need.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.wire.answers import Json


def add_context(document: Json, cluster: Cluster) -> None:
    """Add a cluster, its user with the dummy token, and its context `gke_PROJECT_LOCATION_CLUSTER`."""
    place = cluster.place
    name = f"gke_{place.project}_{place.location}_{place.cluster}"
    authority = base64.b64encode(cluster.ca_pem).decode()
    entries: tuple[tuple[str, Json], ...] = (
        ("clusters", {"cluster": {"server": cluster.kube_url, "certificate-authority-data": authority}}),
        ("users", {"user": {"token": cluster.kube.token}}),
        ("contexts", {"context": {"cluster": name, "user": name}}),
    )
    for key, entry in entries:
        found = document[key]
        if isinstance(found, list):
            found.append({"name": name} | entry)
    document["current-context"] = document.get("current-context") or name
