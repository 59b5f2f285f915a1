"""No code of gpukube decides by a cloud's name: what is one cloud's comes through its provider.

A name of a cloud is looked for as a whole word in identifiers, in comparisons, patterns, keys of mappings and Literal
types, and in every text without a blank, such as a label. Texts for people (messages, help, docstrings, links) may name
clouds.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2] / "gpukube"
CLOUDS = frozenset({"eks", "aks", "gke", "aws", "azure", "gcp", "google", "amazon"})

_AN_ACCOUNT = "the variable of the clouds' own tools that says in whose name they ask: a default of an option"
_A_CHIP = "names of accelerators that are not NVIDIA's, whoever sells them"
_IN_MANIFESTS = "a label or resource that manifests have: they are checked without a spec, and so without a provider"
_A_VARIABLE = "how the names of credentials of the clouds' own tools begin: children in the sandbox never see them"
_AT_TAB = "a target of an export: Tab loads no provider; a test compares the words with the providers'"
_A_GROUP = "the API group of a type: the table of rights has all types of all clusters"
EXCEPTIONS = {
    ("cli/completion.py", "aws"): _AT_TAB,
    ("workload/lint/placement.py", "kubernetes.azure.com/scalesetpriority"): _IN_MANIFESTS,
    ("workload/lint/placement.py", "kubernetes.azure.com/priority"): _IN_MANIFESTS,
    ("workload/lint/placement.py", "kubernetes.azure.com/accelerator"): _IN_MANIFESTS,
    ("workload/lint/placement.py", "cloud.google.com/gke-spot"): _IN_MANIFESTS,
    ("workload/lint/placement.py", "cloud.google.com/gke-accelerator"): _IN_MANIFESTS,
    ("workload/lint/placement.py", "cloud.google.com/gke-gpu"): _IN_MANIFESTS,
    ("workload/lint/network.py", "networking.gke.io.networks/"): _IN_MANIFESTS,
    ("cli/catalog_options.py", "AZURE_SUBSCRIPTION_ID"): _AN_ACCOUNT,
    ("cli/catalog_options.py", "GOOGLE_CLOUD_PROJECT"): _AN_ACCOUNT,
    ("engine/permissions/in_cluster.py", "cloud.google.com"): _A_GROUP,
    ("guard.py", "AWS_"): _A_VARIABLE,
    ("guard.py", "AZURE_"): _A_VARIABLE,
    ("guard.py", "AKS_"): _A_VARIABLE,
    ("guard.py", "GOOGLE_"): _A_VARIABLE,
    ("guard.py", "GCP_"): _A_VARIABLE,
    ("gpu/models.py", r"(aws)?(trainium|inferentia|trn|inf)\d*"): _A_CHIP,
    ("gpu/models.py", r"(google|cloud)?tpu\w*|gaudi\d*"): _A_CHIP,
}
"""File, and text in it ("" for all) -> why it may name clouds."""


def words(text: str) -> set[str]:
    """Split a name by its parts: aksManaged, AKS_NAME, gke-plugin."""
    return {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)}


def named(text: object) -> bool:
    return isinstance(text, str) and bool(words(text) & CLOUDS)


def decisions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the places that decide, by line."""
    for node in walk(tree):
        for name in identifiers(node):
            if named(name):
                yield getattr(node, "lineno", 1), name
        for text in deciding_texts(node):
            if named(text.value):
                yield text.lineno, str(text.value)
        if isinstance(node, ast.Constant) and named(node.value) and not re.search(r"\s|^https://", str(node.value)):
            yield node.lineno, str(node.value)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Give a node and all below it but examples, which are for people."""
    if isinstance(node, ast.keyword) and node.arg == "examples":
        return
    yield node
    for below in ast.iter_child_nodes(node):
        yield from walk(below)


def identifiers(node: ast.AST) -> Iterator[str]:
    """Return the names that a node uses or makes."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name


def deciding_texts(node: ast.AST) -> Iterator[ast.Constant]:
    """Return the texts by which a node chooses."""
    match node:
        case ast.Compare():
            parts = [node.left, *node.comparators]
        case ast.Dict():
            parts = [key for key in node.keys if key is not None]
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.Subscript():
            parts = [node.slice]
        case ast.MatchValue():
            parts = [node.value]
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "get" | "removeprefix" | "removesuffix")):
            parts = node.args[:1]
        case _:
            parts = []
    for part in parts:
        yield from (found for found in ast.walk(part) if isinstance(found, ast.Constant))


def found_in(source: str) -> list[tuple[int, str]]:
    return sorted(set(decisions(ast.parse(source))))


def product() -> Iterator[tuple[str, str]]:
    """Return the files with their sources."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("sandbox/"):
            yield name, path.read_text("utf-8")


def test_gpukube_when_its_code_is_read_then_it_decides_by_no_clouds_name() -> None:
    found = {(name, line, text) for name, source in product() for line, text in found_in(source)}
    assert {place for place in found if not {(place[0], ""), (place[0], place[2])} & EXCEPTIONS.keys()} == set()
    assert {key for key in EXCEPTIONS if not any(key in {(name, ""), (name, text)} for name, _, text in found)} == set()


@pytest.mark.parametrize(
    "source",
    [
        'if provider == "gke": pass',
        'rules = {"aks-managed": 1}',
        'Name = Literal["eks", "aks"]',
        'row = ("eks", "p2", "old")',
        "def _is_aks_managed(node): pass",
        "AZURE_NAME = 1",
        "class GkeCluster: pass",
        "reserved.gke",
        "import gpukube_eks",
        'labels.get("kubernetes.azure.com/agentpool")',
        'key.startswith("eks.amazonaws.com/")',
        'match cloud:\n    case "gke": pass',
        "make(gke=1)",
        'domains = ("cloud.google.com/", "node.kubernetes.io/")',
    ],
)
def test_search_when_a_cloud_is_named_then_found(source: str) -> None:
    assert found_in(source)


@pytest.mark.parametrize(
    "source",
    [
        'Field(examples=[{"gke": 1}])',
        'fix = "on AKS 250"',
        '"""What GKE does."""',
        "weeks = breaks",
        'help = "eks, aks or gke"',
        'link = "docs: aks/x"',
        'link = "https://learn.microsoft.com/azure/aks"',
    ],
)
def test_search_when_a_text_for_people_names_one_then_passed_over(source: str) -> None:
    assert not found_in(source)
