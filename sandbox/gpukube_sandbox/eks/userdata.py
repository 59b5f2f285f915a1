"""What a launch template's user data makes of a node, besides its GPUs.

In scope: merging it as nodeadm does and as Bottlerocket does, and why a node cannot start with it. Out of scope: EKS's
errors about its form and the settings of GPUs (`bottlerocket`), node objects (`machines`).

No shell is run. Of a shell part only lines count that set kernel parameters or huge pages in one of these ways:
`sysctl -w KEY=VALUE`; `KEY = VALUE` with dots in the key, as in a file of sysctl.d; `echo VALUE > /proc/sys/...` or
`/sys/...`; `w /sys/... - - - - VALUE`, as in a file of tmpfiles.d.

Sources: awslabs/amazon-eks-ami nodeadm/internal/api/merge.go, validation.go, api/v1alpha1/nodeconfig_types.go,
doc/examples.md, templates/al2023/runtime/bin/setup-local-disks; bottlerocket-os/bottlerocket-project-website
data/settings kubernetes.toml, kernel.toml, content concepts/bootstrap-commands; kubernetes
pkg/kubelet/apis/config/validation.
"""

from __future__ import annotations

import email
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from gpukube_sandbox.eks.bottlerocket import UserDataError
from gpukube_sandbox.eks.wire.answers import strings_in, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.eks.wire.answers import Json

_NODE_CONFIG, _SHELL = "application/node.eks.aws", "text/x-shellscript"
_STRATEGIES: Final = frozenset({"RAID0", "RAID10", "Mount"})
_CLUSTER: Final = {
    "name": "Name", "apiServerEndpoint": "Apiserver endpoint", "certificateAuthority": "Certificate authority",
    "cidr": "CIDR",
}  # fmt: skip
_FLAGS: Final = {
    "--max-pods": "maxPods", "--cpu-manager-policy": "cpuManagerPolicy", "--pod-max-pids": "podPidsLimit",
    "--topology-manager-policy": "topologyManagerPolicy", "--topology-manager-scope": "topologyManagerScope",
    "--memory-manager-policy": "memoryManagerPolicy", "--cpu-cfs-quota": "cpuCFSQuota",
    "--cpu-cfs-quota-period": "cpuCFSQuotaPeriod", "--image-gc-high-threshold": "imageGCHighThresholdPercent",
    "--image-gc-low-threshold": "imageGCLowThresholdPercent", "--container-log-max-size": "containerLogMaxSize",
    "--container-log-max-files": "containerLogMaxFiles",
}  # fmt: skip
"""Flag of the kubelet, which it prefers to its configuration -> member of KubeletConfiguration."""
_ROCKET: Final = {
    "max-pods": "maxPods", "cpu-manager-policy": "cpuManagerPolicy", "cpu-cfs-quota-enforced": "cpuCFSQuota",
    "topology-manager-policy": "topologyManagerPolicy", "topology-manager-scope": "topologyManagerScope",
    "memory-manager-policy": "memoryManagerPolicy", "pod-pids-limit": "podPidsLimit",
    "image-gc-high-threshold-percent": "imageGCHighThresholdPercent",
    "image-gc-low-threshold-percent": "imageGCLowThresholdPercent", "container-log-max-size": "containerLogMaxSize",
    "container-log-max-files": "containerLogMaxFiles", "allowed-unsafe-sysctls": "allowedUnsafeSysctls",
    "reserved-cpus": "reservedSystemCPUs", "eviction-hard": "evictionHard", "kube-reserved": "kubeReserved",
    "system-reserved": "systemReserved", "max-parallel-image-pulls": "maxParallelImagePulls",
    "single-process-oom-kill": "singleProcessOOMKill", "seccomp-default": "seccompDefault",
    "memory-manager-reserved-memory": "reservedMemory",
}  # fmt: skip
"""Key of settings.kubernetes -> member of KubeletConfiguration."""
_CHOICES: Final = {
    "cpuManagerPolicy": ("none", "static"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
    "topologyManagerScope": ("container", "pod"),
    "memoryManagerPolicy": ("None", "Static"),
}
_NUMBERS: Final = (
    "maxPods", "podPidsLimit", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "containerLogMaxFiles",
)  # fmt: skip
_THRESHOLDS: Final = {"imageGCLowThresholdPercent": 80, "imageGCHighThresholdPercent": 85}
_PERIOD_GATE, _USUAL_PERIOD = "CustomCPUCFSQuotaPeriod", "100ms"
_WRITE: Final = re.compile(r"""echo\s+["']?(?P<value>[^"'>|]+?)["']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s)\s*(?P<path>/\S+)""")
_TMPFILE: Final = re.compile(r"w[+!-]*\s+(?P<path>/\S+)\s+-\s+-\s+-\s+-\s+(?P<value>.+)")
_SYSCTL: Final = re.compile(r"sysctl\s+(?:-\w+\s+)*(?P<key>[a-z][\w-]*(?:[./][\w-]+)+)\s*=\s*(?P<value>.+)")
_ASSIGNED: Final = re.compile(r"(?P<key>[a-z][\w-]*(?:[./][\w-]+)+)\s*=\s*(?P<value>.+)")
_PAGES_FILE: Final = re.compile(r"/hugepages-(\d+)kB/nr_hugepages$")
_SIZES: Final = {"2048": "2Mi", "1048576": "1Gi"}
_NR_HUGEPAGES: Final = "vm.nr_hugepages"


@dataclass(slots=True)
class Setup:
    """A node's settings.

    Attributes:
        kubelet: Members of KubeletConfiguration.
        sysctls: Kernel parameters, named with dots.
        hugepages: Page size -> number of pages.
        raid: How local disks are joined for images and pods: RAID0, RAID10; "" if they are not.
        labels: Labels that the kubelet's flags set.
        taints: Taints that they set, as "key=value:Effect".
    """

    kubelet: Json = field(default_factory=dict)
    sysctls: dict[str, str] = field(default_factory=dict)
    hugepages: dict[str, int] = field(default_factory=dict)
    raid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[str] = field(default_factory=list)

    def set_parameter(self, key: str, value: str) -> None:
        """Set a kernel parameter; vm.nr_hugepages are pages of 2 MiB."""
        name = key.strip().replace("/", ".")
        self.sysctls[name] = value.strip().strip("\"'")
        if name == _NR_HUGEPAGES and self.sysctls[name].isdigit():
            self.hugepages["2Mi"] = int(self.sysctls[name])


def read_setup(text: str, system: str) -> Setup:
    """Return what user data makes of a node.

    Args:
        text: User data that EKS can merge, or that of a custom image; "" for none.
        system: al2023, al2, bottlerocket, windows, or custom.

    Raises:
        UserDataError: The node does not start, or does not join, with it.
    """
    if system == "bottlerocket":
        found = _rocket_setup(tomllib.loads(text)) if text else Setup()
    else:
        found = _mime_setup(text, is_complete=system == "custom")
    _check_kubelet(found.kubelet)
    return found


def _mime_setup(text: str, *, is_complete: bool) -> Setup:
    """Apply the parts of a MIME message in their order.

    Args:
        text: The message; anything else of a custom image has an unknown effect.
        is_complete: EKS adds nothing, so that the configurations must name the cluster.
    """
    found, configured = Setup(), False
    spec: Json = {}
    for part in email.message_from_string(text).walk():
        kind, content = part.get_content_type(), _content(part)
        if kind == _SHELL or content.startswith("#!"):
            for line in content.splitlines():
                _apply_line(found, line.strip())
        elif kind == _NODE_CONFIG:
            configured = True
            for document in _documents(content):
                spec = _merged(spec, document)
    if is_complete and configured:
        _check_cluster(spec)
    kubelet, storage = _below(spec, "kubelet"), _below(spec, "instance", "localStorage")
    found.kubelet = dict(_below(kubelet, "config"))
    for flag in strings_in(kubelet.get("flags")):
        _apply_flag(found, flag)
    strategy = str(storage.get("strategy") or "")
    if strategy and strategy not in _STRATEGIES:
        raise UserDataError(f"unknown strategy of localStorage: {strategy}")
    found.raid = strategy if strategy.startswith("RAID") else ""
    return found


def _content(part: email.message.Message) -> str:
    payload = part.get_payload(decode=True)
    return payload.decode(errors="replace") if isinstance(payload, bytes) else ""


def _documents(text: str) -> Iterator[Json]:
    """Yield the spec of each NodeConfig."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise UserDataError("failed to decode NodeConfig: it is not YAML") from error
    for document in filter(None, documents):
        given = document if isinstance(document, dict) else {}
        if (given.get("apiVersion"), given.get("kind")) != ("node.eks.aws/v1alpha1", "NodeConfig"):
            message = f'no kind "{given.get("kind", "")}" is registered for version "{given.get("apiVersion", "")}"'
            raise UserDataError(message)
        yield _below(given, "spec")


def _merged(below: Json, above: Json) -> Json:
    """Merge two NodeConfigs: maps deeply, flags of the kubelet by appending, other values are replaced."""
    found = dict(below)
    for key, value in above.items():
        old = below.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            found[key] = _merged(old, value)
        elif key == "flags" and isinstance(old, list) and isinstance(value, list):
            found[key] = [*old, *value]
        else:
            found[key] = value
    return found


def _check_cluster(spec: Json) -> None:
    cluster = _below(spec, "cluster")
    for key, name in _CLUSTER.items():
        if not cluster.get(key):
            raise UserDataError(f"{name} is missing in cluster configuration")


def _apply_flag(found: Setup, flag: str) -> None:
    name, _, value = flag.partition("=")
    if name == "--node-labels":
        found.labels |= {key: text for key, _, text in (pair.partition("=") for pair in value.split(",") if pair)}
    elif name == "--register-with-taints":
        found.taints += [taint for taint in value.split(",") if taint]
    elif name == "--allowed-unsafe-sysctls":
        found.kubelet["allowedUnsafeSysctls"] = value.split(",")
    elif name in _FLAGS:
        found.kubelet[_FLAGS[name]] = yaml.safe_load(value)


def _apply_line(found: Setup, line: str) -> None:
    """Apply a line of a shell part, if it is of one of the forms that need no shell."""
    if match := _SYSCTL.match(line) or _ASSIGNED.fullmatch(line):
        found.set_parameter(match["key"], match["value"])
    elif match := _WRITE.match(line) or _TMPFILE.fullmatch(line):
        path, value = match["path"], match["value"].strip()
        if path.startswith("/proc/sys/"):
            found.set_parameter(path.removeprefix("/proc/sys/"), value)
        elif (pages := _PAGES_FILE.search(path)) and pages[1] in _SIZES and value.isdigit():
            found.hugepages[_SIZES[pages[1]]] = int(value)


def _rocket_setup(document: Json) -> Setup:
    found = Setup()
    for key, value in _below(document, "settings", "kubernetes").items():
        if key in _ROCKET:
            found.kubelet[_ROCKET[key]] = value
    for key, value in _below(document, "settings", "kernel", "sysctl").items():
        if not isinstance(value, str):
            raise UserDataError(f"settings.kernel.sysctl.{key} is not a string")
        found.set_parameter(key, value)
    for size, static in _below(document, "settings", "kernel", "hugepages", "static").items():
        if isinstance(static, dict) and size in _SIZES.values():  # bottlerocket-os/bottlerocket-core-kit#952
            found.hugepages[size] = int(str(static.get("count", 0)))
    commands = [
        command
        for entry in _below(document, "settings", "bootstrap-commands").values()
        if isinstance(entry, dict) and entry.get("mode", "off") != "off"
        for command in entry.get("commands") or ()
    ]
    if any(command[0] != "apiclient" for command in commands):
        raise UserDataError("bootstrap-commands: only apiclient commands are allowed")
    steps = {tuple(command[1:3]) for command in commands}
    found.raid = "RAID0" if {("ephemeral-storage", "init"), ("ephemeral-storage", "bind")} <= steps else ""
    return found


def _check_kubelet(config: Json) -> None:
    """Reject a configuration with which the kubelet exits."""
    for key, choices in _CHOICES.items():
        if config.get(key, choices[0]) not in choices:
            raise UserDataError(f"the kubelet does not start: {key} {config[key]!r} is not valid")
    for key in _NUMBERS:
        if key in config and (not isinstance(config[key], int) or isinstance(config[key], bool)):
            raise UserDataError(f"the kubelet does not start: {key} {config[key]!r} is not a number")
    if config.get("memoryManagerPolicy") == "Static" and not config.get("reservedMemory"):
        raise UserDataError("the kubelet does not start: memoryManagerPolicy Static needs reservedMemory")
    gates, period = config.get("featureGates"), config.get("cpuCFSQuotaPeriod", _USUAL_PERIOD)
    if period != _USUAL_PERIOD and not (isinstance(gates, dict) and gates.get(_PERIOD_GATE)):
        raise UserDataError(f"the kubelet does not start: cpuCFSQuotaPeriod needs the feature gate {_PERIOD_GATE}")
    low, high = (config.get(key, usual) for key, usual in _THRESHOLDS.items())
    if whole(low) >= whole(high):
        message = "imageGCLowThresholdPercent is not below imageGCHighThresholdPercent"
        raise UserDataError(f"the kubelet does not start: {message}")


def _below(value: object, *path: str) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
