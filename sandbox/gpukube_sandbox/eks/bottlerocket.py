"""User data of a node group's launch template: MIME for Amazon Linux, TOML settings for Bottlerocket.

In scope: its form, EKS's errors about that, and the effect of Bottlerocket's settings on GPUs. Out of scope: its effect
on kubelet, kernel, and disks (`userdata`), the node's lifecycle (`kube`).

Sources: docs: eks/launch-templates (forms, unsupported TOML); bottlerocket-os/bottlerocket-project-website
data/settings kubelet-device-plugins.toml (1.25 time-slicing, 1.34 MIG, 1.54 MPS); bottlerocket documentation of each;
bottlerocket-os/bottlerocket#4856, bottlerocket-core-kit#914 (1.63 turns the plugin off, and what older ones answer).
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.kube.nodes.hardware import find_model
from gpukube_sandbox.kube.nodes.pluginconfig import Sharing

if TYPE_CHECKING:
    from gpukube_sandbox.eks.wire.answers import Json

_GPU = "nvidia.com/gpu"
_KEY = re.compile(r"([a-z])(\d+)\.(\d+)gb")
_PROFILE = re.compile(r"[0-9]g\.\d+gb")
_SWITCH_SINCE = (1, 63)
_MIN_REPLICAS, _MAX_MPS_REPLICAS = 2, 48
_COUNTED: dict[str, dict[int, str]] = {
    "a100.40gb": {1: "7g.40gb", 2: "3g.20gb", 3: "2g.10gb", 4: "1g.10gb", 7: "1g.5gb"},
    "a100.80gb": {1: "7g.80gb", 2: "3g.40gb", 3: "2g.20gb", 4: "1g.20gb", 7: "1g.10gb"},
    "h100.80gb": {1: "7g.80gb", 2: "3g.40gb", 3: "2g.20gb", 4: "1g.20gb", 7: "1g.10gb"},
    "h200.141gb": {1: "7g.141gb", 2: "3g.71gb", 3: "2g.35gb", 4: "1g.35gb", 7: "1g.18gb"},
}
"""MIG key -> partitions per GPU -> profile: the four models that allow a count."""
_BRACKETED_QUOTED = re.compile(r'^\s*\[[^\]]*"[^\]]*\]', re.MULTILINE)


class UserDataError(Exception):
    """User data that a node cannot start with."""


@dataclass(frozen=True, slots=True)
class GpuSettings:
    """The effect of the settings on a node's GPUs.

    Attributes:
        layout: MIG instances on each GPU, the same on all; () for none.
        sharing: Replicas; None for none.
        runs: Whether the device plugin starts; it does not with MPS over MIG, or if it is turned off.
    """

    layout: tuple[str, ...] = ()
    sharing: Sharing | None = None
    runs: bool = True


def decoded(user_data: object) -> str:
    """Return the user data of a template as text; "" for none."""
    try:
        return base64.b64decode(str(user_data or ""), validate=True).decode(errors="replace")
    except binascii.Error:
        return ""


def check_form(text: str, system: str) -> None:
    """Reject user data that EKS cannot merge with its own.

    Args:
        text: Decoded.
        system: al2023, al2 or bottlerocket.

    Raises:
        UserDataError: With the message of the health issue (hashicorp/terraform-provider-aws#15007 and
            terraform-aws-modules/terraform-aws-eks#2708 for MIME; the TOML message is unconfirmed).
    """
    if not text:
        return
    if system == "bottlerocket":
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UserDataError("User data was not in the TOML format.") from error
        if _BRACKETED_QUOTED.search(text):
            raise UserDataError("User data was not in the TOML format: quoted keys in a table header.")
        return
    head = text.lstrip().lower()
    if not ("mime-version:" in head and "content-type: multipart/" in head):
        raise UserDataError("User data was not in the MIME multipart format.")


def read_settings(text: str, model: str, release: str) -> GpuSettings:
    """Parse Bottlerocket's `settings.kubelet-device-plugins.nvidia`.

    Args:
        text: TOML; "" for none.
        model: GPU model of the node, key of `kube.hardware.MODELS`.
        release: Release of the image, "1.63.0-ab12cd34".

    Raises:
        UserDataError: An invalid value: the kubelet does not start.
    """
    settings = _below(tomllib.loads(text), "settings", "kubelet-device-plugins", "nvidia") if text else {}
    layout = _layout(settings, model)
    sharing = _sharing(settings)
    runs = not (layout and sharing and sharing.strategy == "mps") and _enabled(settings, release)
    return GpuSettings(layout, sharing, runs)


def _below(value: object, *path: str) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _enabled(settings: Json, release: str) -> bool:
    if "enabled" not in settings:
        return True
    major, minor = release.split(".")[:2]
    if (int(major), int(minor)) < _SWITCH_SINCE:
        raise UserDataError("unknown field `enabled` in settings.kubelet-device-plugins.nvidia")
    if not isinstance(settings["enabled"], bool):
        raise UserDataError(f"enabled {settings['enabled']!r} is neither true nor false")
    return bool(settings["enabled"])


def _layout(settings: Json, model: str) -> tuple[str, ...]:
    strategy = settings.get("device-partitioning-strategy", "none")
    if strategy not in {"none", "mig"}:
        raise UserDataError(f"device-partitioning-strategy {strategy!r} is neither none nor mig")
    profiles = _below(settings, "mig", "profile")
    for key, value in profiles.items():
        if not _KEY.fullmatch(key):
            raise UserDataError(f"mig.profile key {key!r} is not of the form a100.40gb")
        if not isinstance(value, str) or not (_PROFILE.fullmatch(value) or value.isdigit()):
            raise UserDataError(f"mig.profile value {value!r} is neither a profile nor a count in quotes")
        if value.isdigit() and int(value) not in _COUNTED.get(key, {}):
            raise UserDataError(f"{key} cannot be cut into {value} partitions")
    key = model.lower().replace("-", ".")
    value = str(profiles.get(key, ""))
    if strategy != "mig" or not value:
        return ()  # effect of MIG mode without a profile for this model is unconfirmed: whole GPUs
    profile = _COUNTED[key][int(value)] if value.isdigit() else value
    known = find_model(model).profiles
    if profile not in known:
        raise UserDataError(f"{model} has no MIG profile {profile}")
    return (profile,) * known[profile].max_count


def _sharing(settings: Json) -> Sharing | None:
    strategy = settings.get("device-sharing-strategy", "none")
    if strategy not in {"none", "time-slicing", "mps"}:
        raise UserDataError(f"device-sharing-strategy {strategy!r} is none of none, time-slicing, mps")
    if strategy == "none":
        return None
    section = _below(settings, str(strategy))
    replicas, maximum = section.get("replicas", _MIN_REPLICAS), _MAX_MPS_REPLICAS if strategy == "mps" else 2**31
    if not isinstance(replicas, int) or not _MIN_REPLICAS <= replicas <= maximum:
        raise UserDataError(f"{strategy}.replicas {replicas!r} is out of range")
    rename = section.get("rename-by-default", True)
    one = section.get("fail-requests-greater-than-one", True)
    if not isinstance(rename, bool) or not isinstance(one, bool):
        raise UserDataError(f"{strategy}: a switch is neither true nor false")
    kind: Literal["mps", "time-slicing"] = "mps" if strategy == "mps" else "time-slicing"
    return Sharing(kind, {_GPU: replicas}, rename=rename, single_only=one)
