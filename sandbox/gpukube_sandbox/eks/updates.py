"""UpdateNodegroupConfig: a group's new members and the update's parameters.

In scope: those two pure functions. Out of scope: rules, the work (`lifecycle`).
"""

from __future__ import annotations

import copy
import json

from gpukube_sandbox.eks.keys import labels_of
from gpukube_sandbox.eks.wire.answers import Json, objects_in, strings_in

_SCALING = {"minSize": "MinSize", "maxSize": "MaxSize", "desiredSize": "DesiredSize"}
_SETTINGS = {
    "maxUnavailable": "MaxUnavailable",
    "maxUnavailablePercentage": "MaxUnavailablePercentage",
    "updateStrategy": "UpdateStrategy",
}


def config_params(sent: Json) -> list[tuple[str, str]]:
    """Return a change as in DescribeUpdate (types: botocore eks UpdateParamType; forms of values unconfirmed)."""
    found: list[tuple[str, str]] = []
    labels, taints = _object(sent, "labels"), _object(sent, "taints")
    pairs = (
        ("LabelsToAdd", labels.get("addOrUpdateLabels")),
        ("LabelsToRemove", labels.get("removeLabels")),
        ("TaintsToAdd", taints.get("addOrUpdateTaints")),
        ("TaintsToRemove", taints.get("removeTaints")),
    )
    found += [(name, json.dumps(value)) for name, value in pairs if value]
    found += [(_SCALING[key], str(value)) for key, value in _object(sent, "scalingConfig").items()]
    found += [(_SETTINGS[key], str(value)) for key, value in _object(sent, "updateConfig").items()]
    found += [("NodeRepairConfig", json.dumps(sent["nodeRepairConfig"]))] if sent.get("nodeRepairConfig") else []
    found += [("WarmPoolEnabled", json.dumps(sent["warmPoolConfig"]))] if sent.get("warmPoolConfig") else []
    return found


def apply_config(members: Json, sent: Json) -> Json:
    """Return the members after an update.

    Labels are changed by key, taints by key and effect; sizes are merged ("any or none of the properties": botocore eks
    NodegroupScalingConfig). The effect on omitted members of a structure is undocumented: here they are lost, so that a
    client that relies on them notices.
    """
    found = copy.deepcopy(members)
    found["labels"] = _labels(members, _object(sent, "labels"))
    found["taints"] = _taints(members, _object(sent, "taints"))
    found["scalingConfig"] = {**_object(members, "scalingConfig"), **_object(sent, "scalingConfig")}
    if "updateConfig" in sent:
        found["updateConfig"] = {"updateStrategy": "DEFAULT", **_object(sent, "updateConfig")}
    if "nodeRepairConfig" in sent:
        found["nodeRepairConfig"] = sent["nodeRepairConfig"]
    if "warmPoolConfig" in sent:
        found["warmPoolConfig"] = sent["warmPoolConfig"]
    return found


def _labels(members: Json, change: Json) -> dict[str, str]:
    found = labels_of(members) | labels_of({"labels": change.get("addOrUpdateLabels")})
    gone = set(strings_in(change.get("removeLabels")))
    return {key: value for key, value in found.items() if key not in gone}


def _taints(members: Json, change: Json) -> list[Json]:
    found = {(taint["key"], taint["effect"]): taint for taint in objects_in(members.get("taints"))}
    for taint in objects_in(change.get("removeTaints")):
        found.pop((taint["key"], taint["effect"]), None)
    found |= {(taint["key"], taint["effect"]): taint for taint in objects_in(change.get("addOrUpdateTaints"))}
    return list(found.values())


def _object(value: Json, key: str) -> Json:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
