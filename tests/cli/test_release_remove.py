"""gpukube's own release leaves a cluster when it is asked to, and nothing needs it: nothing else goes with it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.core_v1 import ConfigMap, Secret

from gpukube.core.jsontree import text
from tests.cli.harness import EXAMPLES, NAMESPACE

if TYPE_CHECKING:
    from tests.cli.harness import Cluster, Gpukube

SLICED = EXAMPLES / "aks-timeslicing.yaml"
CUSTOM = EXAMPLES / "aks-custom-taint.yaml"
REMOVE = ("release", "remove", "-f", SLICED)


def left(cluster: Cluster) -> list[str]:
    """Name what is in gpukube's namespace, but for what every namespace has."""
    kinds: tuple[type[Any], ...] = (DaemonSet, Deployment, ConfigMap, Secret)
    found = [item.to_dict() for kind in kinds for item in cluster.client.list(kind, namespace=NAMESPACE)]
    names = [text(item, "metadata", "name") for item in found]
    return sorted(name for name in names if name != "kube-root-ca.crt")


def test_remove_when_a_pool_needs_the_release_then_refused_by_name_and_it_stays(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED)
    before = left(cluster)
    refused = gpukube(*REMOVE, "--yes")
    assert refused.code == 1
    assert "error[release-needed]: pool t4shared needs release gpukube-system/" in refused.out
    assert left(cluster) == before


def test_remove_when_the_last_pool_is_deleted_then_its_line_does_it_and_only_ours_goes(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED, "-f", CUSTOM)
    cluster.client.create(ConfigMap(metadata=ObjectMeta(name="theirs", namespace=NAMESPACE), data={"a": "b"}))
    first = gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes")
    assert (first.code, "gpukube release remove" in first.out) == (0, False)
    last = gpukube("pool", "delete", "t4custom", "-f", CUSTOM, "--yes")
    line = " ".join(last.out.split()).partition("to remove it: ")[2].partition(".yaml")[0] + ".yaml"
    assert line.startswith("gpukube release remove -f ")
    unasked = gpukube(*shlex.split(line)[1:])
    assert (unasked.code, "cannot remove train-aks: release gpukube-system/" in unasked.err) == (4, True)
    removed = gpukube(*shlex.split(line)[1:], "--yes", "-o", "json")
    assert removed.code == 0, removed.out + removed.err
    document = removed.json()
    assert (document["kind"], document["clusters"][0]["error"]) == ("ReleaseRemoval", None)
    assert "gpukube-nvidia-device-plugin removed" in document["clusters"][0]["release"]
    assert left(cluster) == ["theirs"]
    again = gpukube(*REMOVE)
    assert (again.code, "gpukube has no release here" in again.out) == (0, True)
    assert gpukube("pool", "create", "-f", SLICED).code == 0


def test_remove_when_a_cluster_is_given_by_its_address_then_no_spec_is_needed(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SLICED)
    assert gpukube("pool", "delete", "t4shared", "-f", SLICED, "--yes").code == 0
    address = "aks:11111111-2222-3333-4444-555555555555/ml/train"
    assert gpukube("release", "remove", "--cluster", address, "--yes").code == 0
    assert left(cluster) == []
