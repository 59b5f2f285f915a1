"""User data of Amazon Linux 2023: MIME parts for nodeadm, which starts the kubelet, and for cloud-init.

In scope: converting settings to parts and back, and reading NodeConfig as nodeadm merges it. Out of scope: adding parts
to those of others (`merging`), the launch template that contains them.

EKS adds its own part at the end, and nodeadm merges all parts in their order: maps key by key, kubelet flags appended,
other lists replaced (docs: eks/launch-templates, MIME multi-part; awslabs/amazon-eks-ami nodeadm/doc/examples.md,
nodeadm/internal/api/merge.go). Shell parts run before the kubelet starts: nodeadm-run.service is after cloud-final
(awslabs/amazon-eks-ami templates/al2023).
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, FieldPath, hugepages, kubelet, sysctl
from gpukube.core.jsontree import at, strings, tree
from gpukube_eks.userdata.encoding import decode
from gpukube_eks.userdata.mime import Message, Part, parse_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Settings = Mapping[FieldPath, object]

NODE_CONFIG: Final = "application/node.eks.aws"
SHELL: Final = "text/x-shellscript"
RAID: Final = ("RAID0", "RAID10")
"""Strategies with which images and emptyDir volumes are on the local disks (setup-local-disks of the AMI)."""
_CONFIG: Final = ("kubelet", "config")
_STRATEGY: Final = ("instance", "localStorage", "strategy")
_GATE: Final = "CustomCPUCFSQuotaPeriod"
"""Feature gate that the kubelet requires for another period (kubernetes pkg/kubelet/apis/config/validation)."""
_DEFAULT_PERIOD: Final = "100ms"
_BOUNDARY: Final = b"gpukube"
_NODE_FILE: Final = "gpukube-node.yaml"
_SHELL_FILE: Final = "gpukube-node.sh"
_JOIN_FILE: Final = "gpukube-join.yaml"
_HEAD: Final = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="gpukube"\n\n'
_CONFIG_HEAD: Final = "---\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:"
_SYSCTL_FILE: Final = "/etc/sysctl.d/99-gpukube.conf"
_PAGES_FILE: Final = "/etc/tmpfiles.d/gpukube.conf"
_PAGES: Final = {"2Mi": "2048kB", "1Gi": "1048576kB"}
"""Page size -> its name under /sys/kernel/mm/hugepages."""
_PAGES_LINE: Final = "w /sys/kernel/mm/hugepages/hugepages-{}/nr_hugepages - - - - {}"
_SCRIPT_LINE: Final = re.compile(r"([a-z][\w./-]*) = (.+)|w /\S+/hugepages-(\w+)/nr_hugepages - - - - (\d+)")
_SYSCTL: Final = re.compile(r"[a-z][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)+")
_SYSCTL_VALUE: Final = re.compile(r"[A-Za-z0-9_.:,/+-]+([ \t][A-Za-z0-9_.:,/+-]+)*")
_NUMBERS: Final = frozenset(
    {"podPidsLimit", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "containerLogMaxFiles"}
)
_FLAGS: Final[Mapping[str, str]] = {
    "maxPods": "--max-pods",
    "cpuManagerPolicy": "--cpu-manager-policy",
    "topologyManagerPolicy": "--topology-manager-policy",
    "topologyManagerScope": "--topology-manager-scope",
    "memoryManagerPolicy": "--memory-manager-policy",
    "podPidsLimit": "--pod-max-pids",
    "cpuCFSQuota": "--cpu-cfs-quota",
    "cpuCFSQuotaPeriod": "--cpu-cfs-quota-period",
    "imageGCHighThresholdPercent": "--image-gc-high-threshold",
    "imageGCLowThresholdPercent": "--image-gc-low-threshold",
    "containerLogMaxSize": "--container-log-max-size",
    "containerLogMaxFiles": "--container-log-max-files",
    "allowedUnsafeSysctls": "--allowed-unsafe-sysctls",
}
"""Field of KubeletConfiguration -> its flag, which the kubelet prefers to the field."""


def is_safe_sysctl(key: str, value: str) -> bool:
    """Return whether a parameter can be written into a script: no quotes, line breaks, or shell characters."""
    return _SYSCTL.fullmatch(key) is not None and _SYSCTL_VALUE.fullmatch(value) is not None


def new_message(settings: Settings) -> bytes:
    """Return user data of gpukube's own."""
    parts = "".join(f"--gpukube\nContent-Type: {kind}\n\n{text}\n" for kind, _, text in _own_parts(settings))
    return _HEAD + parts.encode() + b"--gpukube--\n"


def is_node_config(encoded: str) -> bool:
    """Return whether user data has a NodeConfig, so that its readers are nodeadm's."""
    try:
        message = parse_message(decode(encoded)[0])
    except ValueError:
        return False
    return message is not None and any(part.kind == NODE_CONFIG for part in message.parts)


def joining_message(settings: Settings, cluster: Mapping[str, str], flags: Sequence[str]) -> bytes:
    """Return user data with which nodes of an own image join: EKS adds nothing to it then.

    Args:
        settings: As in `new_message`.
        cluster: The `cluster` of NodeConfig, all of whose values nodeadm requires (awslabs/amazon-eks-ami
            nodeadm/internal/api/validation.go).
        flags: The kubelet's labels and taints.
    """
    lines = "\n".join(_yaml_lines({"cluster": dict(cluster), "kubelet": {"flags": list(flags)}}, 1))
    join = _marked(NODE_CONFIG, _JOIN_FILE, f"{_CONFIG_HEAD}\n{lines}\n")
    parts = (join, *(marked_parts(settings) if settings else ()))
    return _HEAD + b"".join(b"--gpukube\n" + part + b"\n" for part in parts) + b"--gpukube--\n"


def marked_parts(settings: Settings) -> tuple[bytes, ...]:
    """Return gpukube's parts for a message of others, recognizable by their file names."""
    return tuple(_marked(kind, name, text) for kind, name, text in _own_parts(settings))


def is_own(part: Part, message: Message) -> bool:
    """Return whether gpukube wrote a part: by its file name, or by its exact form in a message of gpukube's own."""
    if part.filename in (_JOIN_FILE, _NODE_FILE, _SHELL_FILE):
        return True
    text = part.content.decode(errors="replace")
    written = _own_parts(_part_fields(part)) if message.boundary == _BOUNDARY else ()
    return any(kind == part.kind and content == text for kind, _, content in written)


def read_fields(encoded: str) -> dict[FieldPath, object]:
    """Return the comparable fields of user data, whoever wrote them; later parts win."""
    try:
        message = parse_message(decode(encoded)[0])
    except ValueError:
        return {}
    return fields_of(message) if message else {}


def fields_of(message: Message) -> dict[FieldPath, object]:
    """Return the comparable fields of a message: of every NodeConfig, and of gpukube's own script."""
    found = config_fields(merged_config(message.parts))
    for part in message.parts:
        if part.kind == SHELL and is_own(part, message):
            found |= _part_fields(part)
    return found


def merged_config(parts: tuple[Part, ...]) -> dict[str, object]:
    """Return the `spec` of all NodeConfig parts as nodeadm merges them; scalars are text, unreadable parts missing."""
    documents: list[object] = []
    for part in parts:
        with suppress(ValueError):
            documents += _documents(part)
    spec: dict[str, object] = {}
    known: _Pairs = {}
    for inner in [tree(document, "spec") for document in documents]:
        spec = _merged(spec, inner, known)
    return spec


def require_readable(parts: tuple[Part, ...]) -> None:
    """Check that every NodeConfig can be read: a collision with an unreadable one would not be seen.

    Raises:
        ValueError: One cannot.
    """
    for part in parts:
        _documents(part)


def config_fields(spec: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the comparable fields of a NodeConfig's `spec`."""
    found: dict[FieldPath, object] = {}
    config = tree(spec, *_CONFIG)
    for name in _FLAGS:
        value = _typed(name, config.get(name))
        if value is not None:
            found[MAX_PODS if name == "maxPods" else kubelet(name)] = value
    if at(spec, *_STRATEGY) in RAID:
        found[LOCAL_STORAGE] = "ephemeral"
    return found


def config_of(settings: Settings) -> dict[str, object]:
    """Return the `spec` of a NodeConfig with these settings."""
    config = {name: settings[path] for name in _FLAGS if (path := _path_of(name)) in settings}
    if config.get("cpuCFSQuotaPeriod", _DEFAULT_PERIOD) != _DEFAULT_PERIOD:
        config["featureGates"] = {_GATE: True}
    spec: dict[str, object] = {"kubelet": {"config": config}} if config else {}
    if settings.get(LOCAL_STORAGE) == "ephemeral":
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    return spec


def collisions(spec: Mapping[str, object], ours: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths that gpukube would change in a NodeConfig of others: another scalar, list, or kubelet flag."""
    for key, value in ours.items():
        path = (*above, key)
        theirs = spec.get(key)
        if isinstance(value, dict) and isinstance(theirs, dict | None):
            yield from collisions(theirs or {}, value, path)
        elif theirs is not None and theirs != _as_text(value):
            yield ".".join(path)
    if not above:
        flags = {flag.partition("=")[0] for flag in strings(spec, "kubelet", "flags")}
        yield from (f"kubelet.flags {_FLAGS[name]}" for name in tree(ours, *_CONFIG) if _FLAGS.get(name) in flags)


def _path_of(name: str) -> FieldPath:
    return MAX_PODS if name == "maxPods" else kubelet(name)


def _typed(name: str, value: object) -> object:
    """Return a value of KubeletConfiguration in the spec's form; None if it has another."""
    if name == "allowedUnsafeSysctls":
        return tuple(map(str, value)) if isinstance(value, list) else None
    if not isinstance(value, str):
        return None
    if name == "maxPods" or name in _NUMBERS:
        return int(value) if value.isascii() and value.isdecimal() else None
    if name == "cpuCFSQuota":
        return {"true": True, "false": False}.get(value)
    return value


def _marked(kind: str, name: str, text: str) -> bytes:
    return f'Content-Type: {kind}\nContent-Disposition: attachment; filename="{name}"\n\n{text}'.encode()


def _own_parts(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield type, file name, and content of gpukube's parts; the script first, as it needs no kubelet."""
    if script := _script(settings):
        yield SHELL, _SHELL_FILE, script
    spec = config_of(settings)
    if spec or not script:  # user data can be replaced, but not removed: an empty NodeConfig changes nothing
        lines = "\n".join(_yaml_lines(spec, 1)) if spec else ""
        yield NODE_CONFIG, _NODE_FILE, f"{_CONFIG_HEAD}\n{lines}\n" if lines else f"{_CONFIG_HEAD} {{}}\n"


def _yaml_lines(value: Mapping[str, object], depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield f"{'  ' * depth}{key}:"
            yield from _yaml_lines(inner, depth + 1)
        else:
            yield f"{'  ' * depth}{key}: {json.dumps(inner)}"


def _script(settings: Settings) -> str:
    """Return a script that sets kernel parameters and huge pages now, and at each boot; "" for none.

    Raises:
        ValueError: A parameter is not safe in a script; `rules.node_settings` reports it before.
    """
    parameters = {path.key: str(value) for path, value in sorted(settings.items()) if path[0] == "sysctls"}
    pages = [_PAGES_LINE.format(_PAGES[path.key], value) for path, value in settings.items() if path[0] == "hugepages"]
    if not all(is_safe_sysctl(*pair) for pair in parameters.items()):
        raise ValueError("a kernel parameter is not safe in a script")
    lines = []
    if parameters:
        content = [f"{key} = {value}" for key, value in parameters.items()]
        lines += [f"cat > {_SYSCTL_FILE} << 'END'", *content, "END", f"sysctl --load={_SYSCTL_FILE}"]
    if pages:
        lines += [f"cat > {_PAGES_FILE} << 'END'", *sorted(pages), "END", f"systemd-tmpfiles --create {_PAGES_FILE}"]
    return "\n".join(["#!/bin/sh", "# Written by gpukube.", *lines, ""]) if lines else ""


def _part_fields(part: Part) -> dict[FieldPath, object]:
    """Return the settings in one part of gpukube's."""
    if part.kind == NODE_CONFIG:
        return config_fields(merged_config((part,)))
    found: dict[FieldPath, object] = {}
    sizes = {name: size for size, name in _PAGES.items()}
    for line in part.content.decode(errors="replace").splitlines():
        if match := _SCRIPT_LINE.fullmatch(line):
            if match[1]:
                found[sysctl(match[1])] = match[2]
            elif match[3] in sizes:
                found[hugepages(sizes[match[3]])] = int(match[4])
    return found


def _documents(part: Part) -> list[object]:
    """Return the YAML documents of a NodeConfig part, which may be base64 or compressed as nodeadm allows.

    Raises:
        ValueError: It is not YAML.
    """
    if part.kind != NODE_CONFIG:
        return []
    content = part.content
    with suppress(ValueError):
        content = decode("".join(content.decode("ascii").split()))[0]
    try:
        if content.startswith(b"\x1f\x8b"):
            content = decode(base64.b64encode(content).decode())[0]
        return list(yaml.load_all(content, yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError):
        raise ValueError("invalid YAML") from None  # PyYAML quotes the line, and -v shows causes


_Pairs: TypeAlias = dict[tuple[int, int], dict[str, object]]


def _merged(below: Mapping[str, object], above: Mapping[str, object], known: _Pairs) -> dict[str, object]:
    """Merge two maps; each pair once, as aliases make a small document contain one map any number of times."""
    pair = (id(below), id(above))
    if pair in known:
        return known[pair]
    merged = known[pair] = dict(below)
    for key, value in above.items():
        old = below.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _merged(old, value, known)
        elif key == "flags" and isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *value]
        else:
            merged[key] = value
    return merged


def _as_text(value: object) -> object:
    """Return a value as `yaml.BaseLoader` reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return [str(one) for one in value] if isinstance(value, list | tuple) else str(value)
