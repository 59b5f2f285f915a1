"""Metadata of nodes and machines: labels, taints, resource labels, network tags, metadata.

In scope: their forms and reserved keys. Out of scope: settings of the software on nodes (`nodes`).

Sources: NodeConfig of google.container.v1 (metadata, labels, tags); docs: resource-manager/docs/labels-overview.
"""

from __future__ import annotations

import re

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.wire.answers import bad

_PREFIX_CHARS = 253
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_LABEL_CHARS = 1024
_OWN_LABELS = frozenset(
    {
        "cloud.google.com/gke-accelerator", "cloud.google.com/gke-accelerator-count",
        "cloud.google.com/gke-gpu-partition-size", "cloud.google.com/gke-gpu-sharing-strategy",
        "cloud.google.com/gke-max-shared-clients-per-gpu", "cloud.google.com/gke-gpu-driver-version",
        "cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible",
        "cloud.google.com/gke-provisioning", "cloud.google.com/machine-family",
        "cloud.google.com/gke-os-distribution", "cloud.google.com/gke-max-pods-per-node",
    }
)  # fmt: skip
_MAX_RESOURCE_LABELS = 64
_RESOURCE_LABEL_CHARS = 63
_MAX_TAGS, _TAG_CHARS = 64, 63
_MAX_MANAGED_TAGS = 5
_TAG = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_METADATA_KEY = re.compile(r"[a-zA-Z0-9-_]+")
_METADATA_KEY_BYTES, _METADATA_VALUE_BYTES, _METADATA_BYTES = 128, 32 * 1024, 512 * 1024
_RESERVED_METADATA = frozenset(
    {
        "cluster-location", "cluster-name", "cluster-uid", "configure-sh", "containerd-configure-sh", "enable-os-login",
        "gci-ensure-gke-docker", "gci-metrics-enabled", "gci-update-strategy", "instance-template", "kube-env",
        "startup-script", "user-data", "disable-address-manager", "windows-startup-script-ps1", "common-psm1",
        "k8s-node-setup-psm1", "install-ssh-psm1", "user-profile-psm1",
    }
)  # fmt: skip


def check_metadata(config: wire.NodeConfig) -> None:
    """Check all metadata of nodes and their machines.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    _check_labels(dict(config.labels))
    _check_taints(list(config.taints))
    _check_resource_labels(dict(config.resource_labels))
    _check_tags(list(config.tags))
    _check_metadata(dict(config.metadata))
    if len(config.resource_manager_tags.tags) > _MAX_MANAGED_TAGS:  # the comment on ResourceManagerTags
        raise bad(f"A maximum of {_MAX_MANAGED_TAGS} resource manager tags can be specified.")


def _check_labels(labels: dict[str, str]) -> None:
    """Check labels: 1,024 characters per request, in Kubernetes' form, without keys of Kubernetes and GKE.

    The messages about keys are seen in hashicorp/terraform-provider-google#6003 (Kubernetes') and #19677 (GKE's own).
    """
    if sum(len(key) + len(value) for key, value in labels.items()) > _MAX_LABEL_CHARS:
        raise bad(f"Node labels are longer than {_MAX_LABEL_CHARS} characters in total.")
    for key, value in labels.items():
        domain = key.rpartition("/")[0]
        if key in _OWN_LABELS:
            raise bad(
                f'Node labels with key "{key}" are managed by GKE or Kubernetes and must not be manually specified.'
            )
        if domain in {"kubernetes.io", "k8s.io"} or domain.endswith((".kubernetes.io", ".k8s.io")):
            raise bad(f"Applying kubernetes label is not allowed: {key}.")
        if not _is_key(key) or not _is_value(value):
            raise bad(f"Invalid node label {key!r}: {value!r}.")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    right = not slash or (len(prefix) <= _PREFIX_CHARS and _PREFIX.fullmatch(prefix) is not None)
    return right and _QUALIFIED.fullmatch(name) is not None


def _is_value(value: str) -> bool:
    return not value or _QUALIFIED.fullmatch(value) is not None


def _check_taints(taints: list[wire.NodeTaint]) -> None:
    """Check taints: an effect, a key, Kubernetes' form, no duplicates (the message: terraform-provider-google#7928)."""
    seen: set[tuple[str, int]] = set()
    for taint in taints:
        if not taint.key or not int(taint.effect):
            raise bad("Node taint must have a key and an effect.")
        if not _is_key(taint.key) or not _is_value(taint.value):
            raise bad(f"Invalid node taint {taint.key!r}: {taint.value!r}.")
        if (taint.key, taint.effect) in seen:
            effect = wire.NodeTaint.Effect(taint.effect).name
            raise bad(f"Found more than one taint with key {taint.key} and effect {effect}")
        seen.add((taint.key, taint.effect))


def _check_resource_labels(labels: dict[str, str]) -> None:
    """Check labels of machines: at most 64 besides the service's own, in Google Cloud's form of labels.

    The message about characters is seen in kyma-project/kyma#4307 for a cluster; the field's name in it is by analogy.
    """
    count = sum(not key.startswith("goog-gke-") for key in labels)
    if count > _MAX_RESOURCE_LABELS:
        raise bad(f"Resource labels are limited to {_MAX_RESOURCE_LABELS}; {count} were specified.")
    for key, value in labels.items():
        for part, text in (("key", key), ("value", value)):
            field = f"Invalid field 'node_pool.config.resource_labels.{part}': \"{text}\"."
            if not all(one in "_-" or (one.isalnum() and one == one.lower()) for one in text):
                raise bad(
                    f"{field} It must only contain lowercase letters ([a-z]), numeric characters ([0-9]), underscores "
                    "(_) and dashes (-). International characters are allowed."
                )
            if len(text) > _RESOURCE_LABEL_CHARS:
                raise bad(f"{field} It must be no longer than {_RESOURCE_LABEL_CHARS} characters.")
        if not key[:1].isalpha():
            raise bad(f"Invalid field 'node_pool.config.resource_labels.key': \"{key}\". It must begin with a letter.")


def _check_tags(tags: list[str]) -> None:
    """Check network tags: at most 64 (docs: vpc/docs/add-remove-network-tags), in the form of names.

    The message about length is seen in terraform-google-modules/terraform-google-kubernetes-engine#1681.
    """
    if len(tags) > _MAX_TAGS:
        raise bad(f"Network tags are limited to {_MAX_TAGS}; {len(tags)} were specified.")
    for tag in tags:
        if len(tag) > _TAG_CHARS:
            raise bad(f"Invalid tag {tag}: must be no more than {_TAG_CHARS} characters.")
        if not _TAG.fullmatch(tag):
            raise bad(f"Invalid tag {tag}: must comply with RFC1035.")


def _check_metadata(metadata: dict[str, str]) -> None:
    for key, value in metadata.items():
        if not _METADATA_KEY.fullmatch(key) or len(key) >= _METADATA_KEY_BYTES:
            raise bad(f"Invalid metadata key {key!r}.")
        if key in _RESERVED_METADATA:
            raise bad(f"Metadata key {key!r} is reserved.")
        if len(value.encode()) > _METADATA_VALUE_BYTES:
            raise bad(f"Value of metadata key {key!r} must be no larger than 32 KB.")
    if sum(len(key) + len(value.encode()) for key, value in metadata.items()) >= _METADATA_BYTES:
        raise bad("Metadata must be smaller than 512 KB in total.")
