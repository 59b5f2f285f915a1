"""Describes user data of others for plans and reports, without showing what may be secret.

In scope: names of known keys, harmless values, and type, size, and digest of everything else. Out of scope: reading
fields (`merging`).
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import tree
from gpukube_eks.userdata import nodeconfig
from gpukube_eks.userdata.merging import of_others
from gpukube_eks.userdata.mime import parse_message
from gpukube_eks.userdata.tomltext import parse as parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HIDDEN: Final = "(hidden)"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}|[a-z][a-z0-9_]*([./][a-z0-9_-]+){1,8}")
"""Names of keys that are shown: of fields, and of kernel parameters."""
_NODE_CONFIG: Final = (
    ("cluster",),
    ("kubelet",),
    ("kubelet", "config"),
    ("containerd",),
    ("instance",),
    ("instance", "localStorage"),
    ("instance", "network"),
    ("featureGates",),
)
"""Objects of a NodeConfig whose fields are known (awslabs/amazon-eks-ami nodeadm/api/v1alpha1/nodeconfig_types.go)."""
_ROCKET: Final = (
    ("kubernetes",),
    ("kernel",),
    ("kernel", "sysctl"),
    ("kubelet-device-plugins",),
    ("kubelet-device-plugins", "nvidia"),
    ("kubelet-device-plugins", "nvidia", "time-slicing"),
    ("kubelet-device-plugins", "nvidia", "mps"),
    ("host-containers",),
    ("host-containers", "admin"),
    ("host-containers", "control"),
    ("bootstrap-commands",),
    ("bootstrap-containers",),
    ("boot",),
    ("container-runtime",),
    ("updates",),
)
"""Tables below `settings` whose keys are known (bottlerocket-os/bottlerocket-project-website data/settings)."""
_NUMBER: Final = r"-?\d{1,12}"
_SWITCH: Final = "true|false"
_HARMLESS: Final[Mapping[str, str]] = {
    "maxPods": _NUMBER,
    "podPidsLimit": _NUMBER,
    "cpuManagerPolicy": "none|static",
    "topologyManagerPolicy": "none|best-effort|restricted|single-numa-node",
    "topologyManagerScope": "container|pod",
    "memoryManagerPolicy": "None|Static",
    "cpuCFSQuota": _SWITCH,
    "cpuCFSQuotaPeriod": r"\d{1,6}(us|ms|s)",
    "imageGCHighThresholdPercent": _NUMBER,
    "imageGCLowThresholdPercent": _NUMBER,
    "containerLogMaxSize": r"\d{1,6}(Ki|Mi|Gi)?",
    "containerLogMaxFiles": _NUMBER,
    "serializeImagePulls": _SWITCH,
    "maxParallelImagePulls": _NUMBER,
    "strategy": "RAID0|RAID10|Mount",
    "InstanceIdNodeName": _SWITCH,
    "FastImagePull": _SWITCH,
    "max-pods": _NUMBER,
    "pod-pids-limit": _NUMBER,
    "cpu-manager-policy": "none|static",
    "topology-manager-policy": "none|best-effort|restricted|single-numa-node",
    "topology-manager-scope": "container|pod",
    "memory-manager-policy": "None|Static",
    "cpu-cfs-quota-enforced": _SWITCH,
    "image-gc-high-threshold-percent": _NUMBER,
    "image-gc-low-threshold-percent": _NUMBER,
    "container-log-max-size": r"\d{1,6}(Ki|Mi|Gi)?",
    "container-log-max-files": _NUMBER,
    "max-parallel-image-pulls": _NUMBER,
    "enabled": _SWITCH,
    "superpowered": _SWITCH,
    "device-sharing-strategy": "none|time-slicing|mps",
    "device-partitioning-strategy": "none|mig",
    "replicas": _NUMBER,
    "rename-by-default": _SWITCH,
    "fail-requests-greater-than-one": _SWITCH,
}
"""Last part of a key -> values that are shown."""
_SCRIPTS: Final = (
    "text/x-shellscript",
    "text/cloud-config",
    "text/cloud-config-archive",
    "text/cloud-boothook",
    "text/jinja2",
    "text/part-handler",
    "text/x-include-url",
)
"""Types of parts that cloud-init runs (docs: cloud-init, user data formats)."""


def describe_others(encoded: str, *, rocket: bool) -> tuple[str, ...]:
    """Return what others have put into user data: keys with harmless values, and parts as type, size, and digest."""
    try:
        raw = of_others(encoded, rocket=rocket)
    except ValueError:
        return (_described("user data", encoded.encode()),)
    if not raw:
        return ()
    if rocket:
        try:
            return tuple(_keys(tree(parse_toml(raw.decode()), "settings"), _ROCKET, "settings."))
        except ValueError:
            return (_described("user data", raw),)
    message = parse_message(raw)
    if message is None:
        return (_described("user data", raw),)
    keys = _keys(nodeconfig.merged_config(message.parts), _NODE_CONFIG, "")
    rest = (_described(_kind(part.kind), part.content) for part in message.parts if part.kind != nodeconfig.NODE_CONFIG)
    return (*keys, *rest)


def scripts_of_others(encoded: str) -> tuple[str, ...]:
    """Return the parts of others on Amazon Linux that may change what gpukube writes, such as shell scripts."""
    try:
        message = parse_message(of_others(encoded, rocket=False))
    except ValueError:
        return ()
    parts = message.parts if message else ()
    return tuple(_described(part.kind, part.content) for part in parts if part.kind in _SCRIPTS)


def _kind(kind: str) -> str:
    """Return a known content type; others are free text."""
    return kind if kind in (*_SCRIPTS, "text/plain", "application/octet-stream") else "part of another type"


def _described(what: str, content: bytes) -> str:
    return f"{what} ({len(content)} bytes, sha256:{sha256(content).hexdigest()[:16]})"


def _keys(found: Mapping[str, object], known: tuple[tuple[str, ...], ...], prefix: str) -> Iterator[str]:
    for above in ((), *known):
        for key, value in tree(found, *above).items():
            path = (*above, key)
            if path not in known:
                name = prefix + ".".join(path) if _NAME.fullmatch(key) else f"{prefix}{'.'.join((*above, _HIDDEN))}"
                yield f"{name}: {_shown(key, value)}"


def _shown(key: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, str | int) else ""
    pattern = _HARMLESS.get(key)
    return text if pattern and re.fullmatch(pattern, text) else _HIDDEN
