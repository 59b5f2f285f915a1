"""What became of a pool's nodes, told by a watch: it keeps every state, looking now and then misses those that pass by.

In scope: reading the events since a moment. Out of scope: what is expected of them.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]


class Nodes:
    """The nodes of a pool from now on.

    Args:
        kube: A client of the cluster's Kubernetes API.
        selector: Label selector of the pool.
    """

    def __init__(self, kube: httpx.Client, selector: str) -> None:
        self._kube = kube
        self._selector = selector
        listed = kube.get("/api/v1/nodes", params={"labelSelector": selector}).json()
        self._version = str(listed["metadata"]["resourceVersion"])
        self._names = {str(node["metadata"]["name"]) for node in listed["items"]}

    def events(self) -> list[Json]:
        """Every event since then."""
        asked = {"watch": "1", "resourceVersion": self._version, "timeoutSeconds": "1", "labelSelector": self._selector}
        lines = self._kube.get("/api/v1/nodes", params=asked).text.splitlines()
        return [json.loads(line) for line in lines]

    def sizes(self) -> list[int]:
        """How many nodes there were, at first and after each that came or went."""
        names, found = set(self._names), [len(self._names)]
        for event in self.events():
            name = event["object"]["metadata"]["name"]
            (names.discard if event["type"] == "DELETED" else names.add)(name)
            found.append(len(names))
        return [size for size, _ in itertools.groupby(found)]

    def labelled(self, key: str) -> list[str]:
        """Every value of a label that the one node of the pool had."""
        values = (event["object"]["metadata"]["labels"][key] for event in self.events())
        return [value for value, _ in itertools.groupby(values)]

    def readiness(self) -> list[str]:
        """Every status of the condition Ready that the one node of the pool had."""
        nodes = (event["object"].get("status") or {} for event in self.events())
        found = (each["status"] for node in nodes for each in node.get("conditions") or () if each["type"] == "Ready")
        return [status for status, _ in itertools.groupby(found)]
