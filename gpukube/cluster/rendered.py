"""Whether a chart understood our values: a look at what a dry run rendered, before anything is paid for.

Lives here: reading the rendered manifest and comparing it with the plan; pure. Must not live here: running Helm.

A chart ignores values it does not know, and a chart directory whose dependencies were not fetched renders without NFD
and without a word, so a dry run that ended well says little by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.jsontree import items, text, texts, tree
from gpukube.cluster.names import CONFIG_MAP_NAME, NAMESPACE, PLUGIN_NAME
from gpukube.cluster.views import placement_of, workload_view
from gpukube.errors import HelmError, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.jsontree import Tree
    from gpukube.cluster.plugin import ReleasePlan

__all__ = ["read_manifest", "require_rendered"]

_FIX: Final = "use the chart nvidia-device-plugin 0.17.4 or newer, whole (helm pull, not a bare source tree)"


def read_manifest(manifest: str) -> list[Tree]:
    """Split a rendered manifest into objects.

    Raises:
        HelmError: It is not YAML.
    """
    try:
        documents = [tree(document) for document in yaml.safe_load_all(manifest)]
    except yaml.YAMLError as error:
        raise HelmError(
            "the chart renders something that is not YAML",
            where=PLUGIN_NAME,
            why=str(error).splitlines()[0],
            fix=_FIX,
            code="chart-rendered",
        ) from error
    return [document for document in documents if document]


def require_rendered(manifest: str, plan: ReleasePlan) -> None:
    """Check that the rendered objects do what the plan's values ask for.

    Raises:
        HelmError: They do not; names the first thing that is missing.
    """
    objects = read_manifest(manifest)
    found = _missing(objects, plan)
    if found:
        raise HelmError(
            f"the chart does not do what it was told: {found[0]}",
            where=Where(f"{NAMESPACE}/{plan.name}"),
            why="a chart ignores values it does not know",
            fix=_FIX,
            code="chart-rendered",
        )


def _missing(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    return [*_missing_plugin(objects, plan), *_missing_entries(objects, plan), *_missing_nfd(objects, plan)]


def _missing_plugin(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    plugin = _named(objects, "DaemonSet", PLUGIN_NAME)
    if plugin is None:
        return [f"it renders no DaemonSet {PLUGIN_NAME}"]
    got, wanted = workload_view(plugin, "DaemonSet").placement, placement_of(plan.values)
    found = [] if got.affinity == wanted.affinity else ["the plugin's affinity is not the one given"]
    lost = set(wanted.tolerations) - set(got.tolerations)
    found += [f"the plugin lacks the toleration of {item.key}" for item in sorted(lost)]
    names = (text(env, "name") for part in _containers(plugin) for env in items(part, "env"))
    return [*found, "it sets MIG_STRATEGY for all entries"] if "MIG_STRATEGY" in names else found


def _containers(workload: Tree) -> list[object]:
    return items(workload, "spec", "template", "spec", "containers")


def _missing_entries(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    config_map = _named(objects, "ConfigMap", CONFIG_MAP_NAME)
    wanted = texts(plan.values, "config", "map")
    if config_map is None:
        return [f"it renders no ConfigMap {CONFIG_MAP_NAME}"]
    got = texts(config_map, "data")
    return [
        f"config entry {key} is missing" for key in sorted(wanted) if got.get(key, "").strip() != wanted[key].strip()
    ]


def _missing_nfd(objects: Sequence[Tree], plan: ReleasePlan) -> list[str]:
    worker = next((item for item in objects if _is_nfd_worker(item)), None)
    asked = tree(plan.values, "nfd").get("enabled") is True
    if asked and worker is None:
        return ["nfd.enabled is true, and it renders no node-feature-discovery (its dependency is missing)"]
    if not asked:
        return [] if worker is None else ["nfd.enabled is false, and it renders node-feature-discovery"]
    wanted = placement_of(tree(plan.values, "nfd", "worker")).tolerations
    lost = set(wanted) - set(workload_view(worker or {}, "DaemonSet").placement.tolerations)
    return [f"the NFD workers lack the toleration of {item.key}" for item in sorted(lost)]


def _is_nfd_worker(item: Tree) -> bool:
    name = text(item, "metadata", "name")
    return text(item, "kind") == "DaemonSet" and "node-feature-discovery" in name and name.endswith("worker")


def _named(objects: Sequence[Tree], kind: str, name: str) -> Tree | None:
    wanted = (kind, name)
    return next((item for item in objects if (text(item, "kind"), text(item, "metadata", "name")) == wanted), None)
