"""The Table form that `kubectl get` asks for.

Lives here: columns per type. Must not live here: anything stored.

Source: docs reference/using-api/api-concepts, receiving resources as Tables.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from gpukube.sandbox.kube.store.objects import conditions, labels, spec, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from gpukube.sandbox.kube.store.kinds import Kind
    from gpukube.sandbox.kube.store.objects import JsonObject

_Cells = list[tuple[str, "Callable[[JsonObject], object]"]]


def wanted(request: Request) -> bool:
    """Say whether the client prefers a Table."""
    return "as=Table" in request.headers.get("accept", "") and "g=meta.k8s.io" in request.headers.get("accept", "")


def _node_state(node: JsonObject) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions(node).get("Ready", ""), "NotReady")
    return ready + (",SchedulingDisabled" if spec(node).get("unschedulable") else "")


def _containers(pod: JsonObject) -> list[JsonObject]:
    return list(status(pod).get("containerStatuses") or ())


def _pod_state(pod: JsonObject) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for item in status(pod).get("initContainerStatuses") or ():
        waiting = (item.get("state") or {}).get("waiting")
        if waiting and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
    for item in _containers(pod):
        state = item.get("state") or {}
        if "waiting" in state:
            return str(state["waiting"]["reason"])
        if "terminated" in state:
            return str(state["terminated"]["reason"])
    return str(status(pod).get("reason") or status(pod).get("phase", ""))


def _pod_ready(pod: JsonObject) -> str:
    states = _containers(pod)
    total = len(spec(pod).get("containers") or ())
    return f"{sum(bool(item.get('ready')) for item in states)}/{total}"


def _count(*path: str) -> Callable[[JsonObject], object]:
    def read(obj: JsonObject) -> object:
        value: object = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return 0 if value is None else value

    return read


_COLUMNS: dict[str, _Cells] = {
    "Node": [
        ("Status", _node_state),
        (
            "Roles",
            lambda node: (
                ",".join(key.split("/", 1)[1] for key in labels(node) if key.startswith("node-role.kubernetes.io/"))
                or "<none>"
            ),
        ),
        ("Version", lambda node: status(node).get("nodeInfo", {}).get("kubeletVersion", "")),
    ],
    "Pod": [
        ("Ready", _pod_ready),
        ("Status", _pod_state),
        ("Restarts", lambda pod: sum(item.get("restartCount", 0) for item in _containers(pod))),
        ("Node", lambda pod: spec(pod).get("nodeName") or "<none>"),
    ],
    "DaemonSet": [
        ("Desired", _count("status", "desiredNumberScheduled")),
        ("Current", _count("status", "currentNumberScheduled")),
        ("Ready", _count("status", "numberReady")),
        ("Up-to-date", _count("status", "updatedNumberScheduled")),
        ("Available", _count("status", "numberAvailable")),
    ],
    "Deployment": [
        ("Ready", lambda obj: f"{status(obj).get('readyReplicas', 0)}/{spec(obj).get('replicas', 1)}"),
        ("Up-to-date", _count("status", "updatedReplicas")),
        ("Available", _count("status", "availableReplicas")),
    ],
    "Namespace": [("Status", _count("status", "phase"))],
    "Secret": [("Type", _count("type")), ("Data", lambda obj: len(obj.get("data") or ()))],
    "ConfigMap": [("Data", lambda obj: len(obj.get("data") or ()))],
    "Job": [("Completions", lambda obj: f"{status(obj).get('succeeded', 0)}/{spec(obj).get('completions', 1)}")],
}


def _age(obj: JsonObject, now: float) -> str:
    seconds = max(0, int(now - datetime.fromisoformat(obj["metadata"]["creationTimestamp"]).timestamp()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def as_table(kind: Kind, objects: list[JsonObject], now: float, version: str = "") -> JsonObject:
    """Write objects as a Table: name, the type's own columns, age at the sandbox time given."""
    columns = _COLUMNS.get(kind.kind, [])
    heads = [{"name": "Name", "type": "string", "format": "name", "priority": 0, "description": ""}]
    heads += [{"name": name, "type": "string", "format": "", "priority": 0, "description": ""} for name, _ in columns]
    heads.append({"name": "Age", "type": "string", "format": "", "priority": 0, "description": ""})
    rows = [
        {
            "cells": [
                obj["metadata"]["name"],
                *(read(obj) for _, read in columns),
                _age(obj, now),
            ],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]},
        }
        for obj in objects
    ]
    meta = {"resourceVersion": version or (objects[0]["metadata"]["resourceVersion"] if objects else "")}
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": heads, "rows": rows}


def event_as_table(kind: Kind, event: JsonObject, now: float) -> JsonObject:
    """Write a watch event's object as a Table of one row; bookmarks stay as they are."""
    if event["type"] == "BOOKMARK":
        return event
    return {"type": event["type"], "object": as_table(kind, [event["object"]], now)}
