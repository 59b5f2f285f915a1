"""Specs for property tests, drawn from the published schema: a new field is drawn without a line here.

In scope: strategies for specs as plain data. Out of scope: what is asserted of them.

`anything_of` draws what the schema allows; `specs` mends a draw where fields depend on each other, so that the loader
takes most of them. Texts are of the kind that YAML readers quarrel about.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from gpukube.spec.reference.schema import VARIABLE, json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import SearchStrategy

Node = dict[str, Any]

SCHEMA: Node = dict(json_schema())
DEFINITIONS: Node = SCHEMA["$defs"]
ODD = (
    "no", "on", "~", "null", "true", "0777", "0o17", "0x1F", "1e3", "1_000", "1:30", "1.30", "-0", ".5", ".inf", "=",
    "2026-01-01", "<<", "*a", "&a", "!x", "%x", "@x", "`x", "- a", "a: b", "a #b", "#a", " a ", "'", '"', "\\", "{}",
    "a\nb", "\n", "\t", "\x00", "\x85", "\u2028", "\ufeff", "é", "😀", "$", "${", "${HOME}", "$${HOME}", "$$${", "[a",
)  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
LABEL_KEYS = st.from_regex(r"([a-z]{1,3}\.io/)?[A-Za-z0-9]([-_.][A-Za-z0-9]){0,2}", fullmatch=True)
LABEL_VALUES = st.just("") | st.from_regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,3}[A-Za-z0-9])?", fullmatch=True)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
FREE = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)


def anything_of(node: Node) -> SearchStrategy[Any]:
    """Draw what a part of the schema allows, variables left out."""
    if "$ref" in node:
        return defined(str(node["$ref"]).rpartition("/")[2])
    forms = [form for form in node.get("oneOf", ()) or node.get("anyOf", ()) if form != {"pattern": VARIABLE}]
    if forms and "properties" not in node:
        return st.one_of(*(anything_of({"type": "string"} | form if "oneOf" not in node else form) for form in forms))
    for key, draw in _KINDS.items():
        if key in node:
            return draw(node)
    return _TYPES[node["type"]](node)


@cache
def defined(name: str) -> SearchStrategy[Any]:
    """Draw what a definition of the schema allows; made once, because that takes longer than drawing."""
    return FREE if name == "JsonValue" else anything_of(DEFINITIONS[name])


def _text(node: Node) -> SearchStrategy[str]:
    if pattern := node.get("pattern"):
        form = str(pattern).removesuffix(f"|{VARIABLE}").removeprefix("^").removesuffix("$")
        return st.from_regex(form, fullmatch=True, alphabet=st.characters(codec="ascii"))
    return TEXTS


def _integer(node: Node) -> SearchStrategy[int]:
    low = int(node.get("minimum", 0))
    return st.integers(low, int(node.get("maximum", low + 100)))


def _number(node: Node) -> SearchStrategy[float]:
    low = node.get("exclusiveMinimum", 0)
    return st.floats(low, 1e6, exclude_min=True) | st.integers(int(low) + 1, 99)


def _object(node: Node) -> SearchStrategy[Node]:
    if "properties" in node:
        required = {key: anything_of(node["properties"][key]) for key in node.get("required", ())}
        other = {key: anything_of(field) for key, field in node["properties"].items() if key not in required}
        return st.fixed_dictionaries(required, optional=other)
    values = anything_of(node["additionalProperties"])
    keys = anything_of({"type": "string", **node.get("propertyNames", {})})
    return st.dictionaries(keys, values, min_size=node.get("minProperties", 0), max_size=2)


_KINDS: Mapping[str, Callable[[Node], SearchStrategy[Any]]] = {
    "const": lambda node: st.just(node["const"]),
    "enum": lambda node: st.sampled_from(node["enum"]),
}
_TYPES: Mapping[str, Callable[[Node], SearchStrategy[Any]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": lambda _: st.booleans(),
    "object": _object,
    "array": lambda node: st.lists(anything_of(node["items"]), min_size=node.get("minItems", 0), max_size=2),
}


def pool_parts() -> SearchStrategy[Node]:
    """Draw any part of a pool without its name, mappings incomplete too: what `defaults` or a pool may hold."""
    return defined("PoolSettingsPart")


CLOUDS = ("eks", "aks", "gke")
CLUSTER_KEYS = anything_of({"type": "string", **SCHEMA["properties"]["clusters"]["propertyNames"]})
NODES = st.tuples(*[st.integers(0, 9)] * 3).map(sorted)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {"key": LABEL_KEYS, "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])},
        optional={"value": LABEL_VALUES},
    ),
    max_size=2,
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)
LABELS = st.dictionaries(LABEL_KEYS, LABEL_VALUES, max_size=2)
ZONES = st.lists(TEXTS, max_size=2, unique=True)


@st.composite
def specs(draw: st.DrawFn) -> Node:
    """Draw a whole spec with one or two pools on one to three clusters."""
    keys = draw(st.lists(CLUSTER_KEYS, min_size=1, max_size=3, unique=True))
    clusters = {key: draw(defined(f"{draw(st.sampled_from(CLOUDS)).capitalize()}Cluster")) for key in keys}
    for number, cluster in enumerate(clusters.values()):
        cluster["name"] = f"c{number}"  # two keys of one cluster would hold one pool twice
    pools = draw(st.lists(defined("Pool"), min_size=1, max_size=2))
    return {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": draw(defined("Metadata")),
        "clusters": clusters,
        "pools": [_mended(draw, pool, number, clusters) for number, pool in enumerate(pools)],
    }


def _mended(draw: st.DrawFn, pool: Node, number: int, clusters: Mapping[str, Node]) -> Node:
    """Make the fields of a pool agree with each other and with the clusters."""
    keys = draw(st.lists(st.sampled_from(list(clusters)), min_size=1, unique=True))
    gpu = {} if isinstance(pool.get("instanceType"), str) else {"gpu": draw(defined("Gpu"))}
    types = dict.fromkeys(pool.pop("instanceTypes", []))
    if types and "instanceType" not in pool and all(clusters[key]["provider"] == "eks" for key in keys):
        gpu["instanceTypes"] = [*types]  # excludes instanceType, and only EKS mixes types
    if pool.get("disk", {}).get("encrypted") is False:
        pool["disk"].pop("kmsKey", None)
    pool.get("kubelet", {}).pop("imageGCLowThresholdPercent", None)  # must be below the other
    low, first, high = draw(NODES)
    scope = draw(st.sampled_from(["pool", "zone"]))
    bounds = {"min": low, "max": max(high, 1), "initial": first, "scope": scope}
    nodes = draw(st.sampled_from([{"count": high}, {"autoscaling": bounds}]))
    if pool.pop("alternatives", None) and nodes.get("count"):
        pool["alternatives"] = [{"name": f"p{number}a"}]
    if "count" not in nodes:
        pool.pop("place", None)  # an autoscaled family is on each of its clusters
    changes = {
        "name": f"p{number}",
        "names": {cloud: f"{cloud}{number}" for cloud in pool.get("names", {})},
        "clusters": keys,
        "nodes": nodes,
        "zones": draw(ZONES) or ["1"],
        "labels": draw(LABELS),
        "taints": draw(TAINTS),
        "sharing": _sharing(pool.get("sharing", {})),
        "capacity": _capacity(draw, {clusters[key]["provider"] for key in keys}),
    }
    for part, key in (("devicePlugin", "owner"), ("upgrade", "maxUnavailable")):
        pool.get(part, {}).pop(key, None)  # what an owner allows, and both being 0, are rules of their own
    if pool.get("upgrade", {}).get("maxSurge") in (0, "0%"):
        pool["upgrade"] = {}
    return pool | gpu | changes


def _sharing(sharing: Node) -> Node:
    alone = {"mps": sharing["mps"]} if "mps" in sharing else dict(sharing)
    if "mig" in alone:
        layout = alone["mig"].get("layout")
        form = {"layout": layout, "strategy": "mixed"} if layout else {"profile": "1g.5gb"}
        alone["mig"] = {"strategy": alone["mig"].get("strategy", "single"), **form}
    return alone


def _capacity(draw: st.DrawFn, clouds: set[str]) -> Node:
    kind = draw(st.sampled_from(["on-demand", "spot", "reserved"]))
    if kind == "reserved":
        return {"type": kind, "reserved": {cloud: draw(_reserved(cloud)) for cloud in sorted(clouds)}}
    price = {"maxPrice": draw(_number({}))} if kind == "spot" and draw(st.booleans()) else {}
    return {"type": kind, **price}


@cache
def _reserved(cloud: str) -> SearchStrategy[Node]:
    forms = DEFINITIONS[f"{cloud.capitalize()}Reserved"]["properties"].items()
    return st.one_of(*(st.fixed_dictionaries({key: anything_of(field)}) for key, field in forms))
