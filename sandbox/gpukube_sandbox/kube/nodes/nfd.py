"""Node Feature Discovery: labels nodes with the features of their machines.

In scope: what the worker detects, what the master accepts and writes. Out of scope: GPU Feature Discovery's labels
(`gfd`), pods.

Source: kubernetes-sigs/node-feature-discovery v0.19.0 source/pci, pkg/nfd-master, configuration references.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import yaml

from gpukube_sandbox.kube.store.objects import annotations_of, labels, meta, name_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"
_OWNED = "nfd.node.kubernetes.io/feature-labels"
_PREFIX = "feature.node.kubernetes.io/"
_GPU_CLASS, _GPU_VENDOR = "0302", "10de"
_ADAPTER_CLASS, _ADAPTER_VENDOR = "0207", "15b3"
_DEFAULT_CLASSES = ("03", "0b40", "12")
_DEFAULT_FIELDS = ("class", "vendor")


@lru_cache(maxsize=64)  # all workers repeatedly read the same few configs
def _load(text: str) -> JsonObject:
    loaded = yaml.safe_load(text) if text else None
    return loaded if isinstance(loaded, dict) else {}


def worker_labels(config: str, *, gpu: bool, infiniband: bool = False) -> dict[str, str]:
    """Return the labels that a worker detects on a machine.

    Args:
        config: Content of nfd-worker.conf; the PCI source's whitelist and label fields determine the label's name.
        gpu: The machine has NVIDIA GPUs, with or without a driver.
        infiniband: It has InfiniBand adapters.
    """
    found = {f"{_PREFIX}kernel-version.major": "6", f"{_PREFIX}system-os_release.ID": "ubuntu"}
    pci = (_load(config).get("sources") or {}).get("pci") or {}
    classes = [str(item) for item in pci.get("deviceClassWhitelist") or _DEFAULT_CLASSES]
    fields = pci.get("deviceLabelFields") or _DEFAULT_FIELDS
    devices = [(gpu, _GPU_CLASS, _GPU_VENDOR, "20b0"), (infiniband, _ADAPTER_CLASS, _ADAPTER_VENDOR, "101e")]
    for there, kind, vendor, device in devices:
        if there and any(kind.startswith(item) for item in classes):
            values = {"class": kind, "vendor": vendor, "device": device}
            name = "_".join(values[item] for item in ("class", "vendor", "device") if item in fields)
            found[f"{_PREFIX}pci-{name}.present"] = "true"
    return found


def node_feature(name: str, namespace: str, node: str, found: dict[str, str], pod: JsonObject) -> JsonObject:
    """Return the NodeFeature object by which worker and GFD pass labels to the master; its pod owns it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": meta(pod)["uid"]}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {NODE_NAME_LABEL: node},
            "ownerReferences": [owner],
        },
        "spec": {"features": {"flags": {}, "attributes": {}, "instances": {}}, "labels": found},
    }


async def publish(api: ObjectApi, feature: JsonObject) -> bool:
    """Create or update a NodeFeature; return False if the cluster does not have the type."""
    name, namespace = name_of(feature), meta(feature)["namespace"]
    live = await api.get("nodefeatures", name, namespace)
    if live is None:
        return await api.create("nodefeatures", feature) is not None
    gone = {key: None for key in spec(live).get("labels") or {} if key not in spec(feature)["labels"]}
    change = {
        "metadata": {"ownerReferences": feature["metadata"]["ownerReferences"]},
        "spec": {"labels": gone | spec(feature)["labels"]},
    }
    await api.patch("nodefeatures", live, change)
    return True


async def relabel(api: ObjectApi, nodes: Iterable[JsonObject], master_config: str) -> None:
    """Do the master's work: update the labels of every node from the NodeFeature objects."""
    allowed = {str(item) for item in _load(master_config).get("extraLabelNs") or ()}
    desired: dict[str, dict[str, str]] = {}
    for feature in await api.list("nodefeatures"):
        place = desired.setdefault(labels(feature).get(NODE_NAME_LABEL, ""), {})
        place.update(
            {key: value for key, value in (spec(feature).get("labels") or {}).items() if _accepted(key, allowed)}
        )
    for node in nodes:
        await _write(api, node, desired.get(name_of(node), {}))


def _accepted(key: str, allowed: set[str]) -> bool:
    namespace = key.partition("/")[0]
    return key.startswith(_PREFIX) or any(namespace == item or namespace.endswith(f".{item}") for item in allowed)


async def strip(api: ObjectApi, nodes: Iterable[JsonObject]) -> None:
    """Do the work of `nfd-master -prune`: remove all of NFD's labels from every node."""
    for node in nodes:
        await _write(api, node, {})


async def _write(api: ObjectApi, node: JsonObject, desired: dict[str, str]) -> None:
    owned = annotations_of(node).get(_OWNED, "")
    before = {key if "/" in key else _PREFIX + key for key in owned.split(",") if key}
    book = ",".join(sorted(key.removeprefix(_PREFIX) for key in desired))
    change: dict[str, str | None] = {key: None for key in before if key not in desired and key in labels(node)}
    change |= {key: value for key, value in desired.items() if labels(node).get(key) != value}
    if change or book != owned:
        await api.patch("nodes", node, {"metadata": {"labels": change, "annotations": {_OWNED: book or None}}})
