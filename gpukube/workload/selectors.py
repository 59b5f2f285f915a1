"""Label selectors and node selectors, as the scheduler evaluates them.

Pure. In scope: matching labels. Out of scope: which pod or node has them.

Source: kubernetes/component-helpers scheduling/corev1/nodeaffinity; kubernetes/apimachinery pkg/labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import strings, text, texts, trees

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Selector:
    """A LabelSelector.

    Attributes:
        pairs: matchLabels.
        requirements: matchExpressions.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Tree, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it requires nothing, and so selects everything."""
        return not self.pairs and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy all its requirements."""
        for key, value in self.pairs:
            if labels.get(key) != value:
                return False
        return all(holds(item, labels) for item in self.requirements)


def read_selector(value: object) -> Selector | None:
    """Read a LabelSelector; None, which selects nothing, if there is none."""
    if value is None:
        return None
    return Selector(tuple(texts(value, "matchLabels").items()), tuple(trees(value, "matchExpressions")))


def matches_term(term: Tree, labels: Mapping[str, str], name: str) -> bool:
    """Evaluate one term of a node selector; a term without requirements matches no node.

    Args:
        term: matchExpressions and matchFields, which must all match.
        labels: Labels of the node.
        name: Name of the node, the only field that can be selected.
    """
    expressions, fields = trees(term, "matchExpressions"), trees(term, "matchFields")
    if not expressions and not fields:
        return False
    # A field requirement has exactly one value; otherwise the whole term matches nothing.
    if any(len(strings(item, "values")) != 1 for item in fields):
        return False
    return all(holds(item, labels) for item in expressions) and all(
        holds(item, {"metadata.name": name}) for item in fields
    )


def holds(requirement: Tree, labels: Mapping[str, str]) -> bool:
    """Evaluate one requirement of matchExpressions; an unknown operator never matches."""
    key, operator, values = text(requirement, "key"), text(requirement, "operator"), strings(requirement, "values")
    found = labels.get(key)
    match operator:
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt" if found is not None and len(values) == 1:
            if not _INTEGER.fullmatch(found) or not _INTEGER.fullmatch(values[0]):
                return False
            return int(found) > int(values[0]) if operator == "Gt" else int(found) < int(values[0])
    return False
