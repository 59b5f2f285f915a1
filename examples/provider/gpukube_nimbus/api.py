"""Nimbus itself, which a real provider would reach through an SDK. It does not know gpukube.

One file stores all clusters; a change completes after a few reads.
"""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any, Final

_LOOKS: Final = 2
_LOCK: Final = threading.RLock()
_KEYS: Final = {"name", "machine", "size", "autoscale", "labels", "taints", "tags", "mig", "rack"}


class NimbusError(Exception):
    """An API error with its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NimbusApi:
    """A client of the cloud.

    Args:
        file: The file that stores the cloud.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def make_cluster(self, site: str, cluster: str, kubernetes: str) -> None:
        """Create an empty cluster with the Kubernetes API at that URL."""
        world = self._read() if self._file.exists() else {}
        world[f"{site}/{cluster}"] = {"version": "1.34.2", "kubernetes": kubernetes, "pools": {}}
        self._write(world)

    def get_cluster(self, site: str, cluster: str) -> dict[str, Any]:
        """Read a cluster."""
        return self._cluster(self._read(), site, cluster)

    def list_pools(self, site: str, cluster: str) -> dict[str, Any]:
        """Return all pools of a cluster by name."""
        return dict(self.get_cluster(site, cluster)["pools"])

    def create_pool(self, site: str, cluster: str, body: dict[str, Any]) -> dict[str, Any]:
        """Start creating a pool.

        Raises:
            NimbusError: invalid, or exists.
        """
        if unknown := body.keys() - _KEYS:
            raise NimbusError("invalid", f"unknown fields: {', '.join(sorted(unknown))}")
        with _LOCK:
            world = self._read()
            pools = self._cluster(world, site, cluster)["pools"]
            if body["name"] in pools:
                raise NimbusError("exists", f"pool {body['name']} already exists")
            nodes = body["autoscale"]["initial"] if "autoscale" in body else body["size"]
            made = {**copy.deepcopy(body), "nodes": nodes, "state": "CREATING", "looks": 0, "version": 1}
            pools[body["name"]] = {**made, "tags": {**made["tags"], "made-by": "nimbus"}}
            self._write(world)
        return {}

    def update_pool(self, site: str, cluster: str, name: str, patch: dict[str, Any], version: str) -> dict[str, Any]:
        """Change parts of a pool; null removes a value.

        Raises:
            NimbusError: not-found, or moved: the pool's version has changed.
        """
        with _LOCK:
            world = self._read()
            pool = self._cluster(world, site, cluster)["pools"].get(name)
            if pool is None:
                raise NimbusError("not-found", f"pool {name} does not exist")
            if str(pool["version"]) != version:
                raise NimbusError("moved", f"{name} was changed since it was read")
            _merge(pool, patch)
            pool |= {"version": pool["version"] + 1, "state": "UPDATING", "looks": 0}
            pool["nodes"] = pool["size"] if "size" in pool else max(pool["nodes"], pool["autoscale"]["min"])
            self._write(world)
        return {}

    def delete_pool(self, site: str, cluster: str, name: str) -> dict[str, Any]:
        """Delete a pool, if it exists."""
        with _LOCK:
            world = self._read()
            self._cluster(world, site, cluster)["pools"].pop(name, None)
            self._write(world)
        return {}

    def look_at_pool(self, site: str, cluster: str, name: str) -> dict[str, Any]:
        """Read a pool, and advance its time a little; {} if it does not exist."""
        with _LOCK:
            world = self._read()
            pool: dict[str, Any] = self._cluster(world, site, cluster)["pools"].get(name, {})
            if pool.get("state") in ("CREATING", "UPDATING"):
                pool["looks"] += 1
                if pool["looks"] > _LOOKS:
                    pool["state"] = "FAILED" if pool.get("error") else "ACTIVE"
                self._write(world)
        return pool

    def _cluster(self, world: dict[str, Any], site: str, cluster: str) -> dict[str, Any]:
        if f"{site}/{cluster}" not in world:
            raise NimbusError("not-found", f"cluster {cluster} does not exist at {site}")
        found: dict[str, Any] = world[f"{site}/{cluster}"]
        return found

    def _read(self) -> dict[str, Any]:
        with _LOCK:
            world: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
        return world

    def _write(self, world: dict[str, Any]) -> None:
        beside = self._file.with_name(f".{self._file.name}.new")
        beside.write_text(json.dumps(world, indent=2), "utf-8")
        beside.replace(self._file)


def _merge(node: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            node.pop(key, None)
        elif isinstance(value, dict) and isinstance(node.get(key), dict) and key != "autoscale":
            _merge(node[key], value)
        else:
            node[key] = value
