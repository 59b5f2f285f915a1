"""Bottlerocket's settings: TOML in the node's user data configures its device plugin, MIG manager, and kubelet.

In scope: converting sharing and the maximum pods of a node to settings and back. Out of scope: the launch template
that contains them.

Sources: bottlerocket-os/bottlerocket-project-website, data/settings kubelet-device-plugins.toml (1.25 time-slicing,
1.34 MIG, 1.54 MPS) and kubernetes.toml (max-pods); docs: eks/launch-templates (EKS merges TOML, the user's keys win; no
quoted keys in table headers). By default Bottlerocket renames shared GPUs and limits pods to one share, so both
switches are always set.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MAX_PODS, MIG_PROFILE, FieldPath
from gpukube.core.jsontree import at, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.sharing import Sharing

MIG_MODELS: Final = ("A100-40GB", "A100-80GB", "H100-80GB", "H200-141GB")
"""GPUs with a documented key under mig.profile; keys have one letter, so RTX PRO and GB200 have none."""

RELEASES: Final[Mapping[str, tuple[int, int]]] = {"time-slicing": (1, 25), "mig": (1, 34), "mps": (1, 54)}
"""First release that supports each setting."""

_PATH: Final = ("settings", "kubelet-device-plugins", "nvidia")
_KUBELET: Final = ("settings", "kubernetes")
_PODS: Final = "max-pods"
_TABLE: Final = ".".join(_PATH)
_PROFILE: Final = re.compile(r"[0-9]g\.\d+gb")


UNSHARED: Final = base64.b64encode(f'[{_TABLE}]\ndevice-sharing-strategy = "none"\n'.encode()).decode()
"""User data that turns sharing off: a new launch template version can replace user data, but not remove it."""


def is_profile(profile: str) -> bool:
    """Return whether Bottlerocket supports a profile: only plain ones, without +me or +gfx."""
    return _PROFILE.fullmatch(profile) is not None


def user_data(sharing: Sharing, model: GpuModel, max_pods: int | None = None) -> str:
    """Return the settings of a checked sharing, in base64 as in a launch template; "" if there are none."""
    lines = _shared_lines(sharing, model)
    if max_pods is not None:
        lines += [*([""] if lines else []), f"[{'.'.join(_KUBELET)}]", f"{_PODS} = {max_pods}"]
    return base64.b64encode(("\n".join(lines) + "\n").encode()).decode() if lines else ""


def _shared_lines(sharing: Sharing, model: GpuModel) -> list[str]:
    head, tables = [], []
    if sharing.mig is not None:
        head.append('device-partitioning-strategy = "mig"')
        tables.append(("mig.profile", {_quoted(model.name.lower().replace("-", ".")): _quoted(sharing.mig.profile)}))
    if (slicing := sharing.slicing) is not None:
        head.append(f'device-sharing-strategy = "{slicing.mode}"')
        values = {"replicas": str(slicing.replicas), "rename-by-default": _flag(on=slicing.rename)}
        if slicing.mode == "time-slicing":
            values["fail-requests-greater-than-one"] = _flag(on=bool(slicing.fail_requests_greater_than_one))
        tables.append((slicing.mode, values))
    lines = [f"[{_TABLE}]", *head] if head else []
    for name, values in tables:
        lines += ["", f"[{_TABLE}.{name}]", *(f"{key} = {value}" for key, value in values.items())]
    return lines


def read_settings(encoded: str) -> dict[FieldPath, object]:
    """Return the comparable fields of user data; anything but Bottlerocket's TOML has none."""
    try:
        document = tomllib.loads(base64.b64decode(encoded, validate=True).decode())
    except ValueError:  # not base64, not text, or not TOML
        return {}
    settings = tree(document, *_PATH)
    found: dict[FieldPath, object] = {}
    if settings.get("device-partitioning-strategy") == "mig":
        profiles = tree(settings, "mig", "profile")
        found[MIG_PROFILE] = ", ".join(str(value) for _, value in sorted(profiles.items())) or "none"
    mode = str(settings.get("device-sharing-strategy", "none"))
    if mode in _FIELDS:
        found |= _slicing_fields(mode, tree(settings, mode))
    if isinstance(pods := at(document, *_KUBELET, _PODS), int):
        found[MAX_PODS] = pods
    return found


def sharing_fields(sharing: Sharing) -> dict[FieldPath, object]:
    """Return the comparable fields of a desired sharing, with the names of `read_settings`."""
    found: dict[FieldPath, object] = {MIG_PROFILE: sharing.mig.profile} if sharing.mig else {}
    if (slicing := sharing.slicing) is not None:
        values = {"replicas": slicing.replicas, "rename-by-default": slicing.rename}
        values["fail-requests-greater-than-one"] = bool(slicing.fail_requests_greater_than_one)
        found |= _slicing_fields(slicing.mode, values)
    return found


_FIELDS: Final = {"time-slicing": "timeSlicing", "mps": "mps"}
"""Mode -> its key under `sharing`."""
_DEFAULT_REPLICAS: Final = 2


def _slicing_fields(mode: str, values: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the fields of a mode; Bottlerocket's defaults are two replicas, renamed, at most one share."""
    above = ("sharing", _FIELDS[mode])
    found: dict[FieldPath, object] = {
        FieldPath(*above, "replicas"): values.get("replicas", _DEFAULT_REPLICAS),
        FieldPath(*above, "renameByDefault"): values.get("rename-by-default", True),
    }
    if mode == "time-slicing":
        found[FieldPath(*above, "failRequestsGreaterThanOne")] = values.get("fail-requests-greater-than-one", True)
    return found


def _quoted(text: str) -> str:
    return json.dumps(text)


def _flag(*, on: bool) -> str:
    return "true" if on else "false"
