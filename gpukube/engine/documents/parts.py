"""Parts that several kinds of documents share: findings, changes, calls, plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from gpukube.core.fields import COUNT, LEAST, MOST
from gpukube.rule_ids import rule_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from _typeshed import DataclassInstance

    from gpukube.core.values import ClassifiedChange, Locator, Nodes, Observed
    from gpukube.core.values import Request as NativeRequest
    from gpukube.core.values import Toleration as PodToleration
    from gpukube.engine.documents.shapes.parts import (
        Change,
        Diagnostic,
        GpuModel,
        NodeRange,
        Position,
        Request,
        SilencedPart,
        Toleration,
    )
    from gpukube.engine.plan.silencing import Silenced
    from gpukube.errors import Finding, GpukubeError, Severity, Where
    from gpukube.gpu.catalog import Machine
    from gpukube.workload.lint.ignores import Ignored

WEIGHTS: Final[Mapping[Severity, Literal["note", "waiting", "broken"]]] = MappingProxyType(
    {"error": "broken", "warning": "waiting", "hint": "note"}
)
"""How documents spell the severity of what is missing on nodes."""

Document = Mapping[str, object]
"""Any document; the shapes are in shapes/."""

_USER_DATA: Final = frozenset({"userdata", "customdata", "startupscript"})
"""Field names (letters only, lower case) that can contain users' scripts, including secrets."""
_METADATA: Final = "metadata"
"""Field of machines with values for scripts on them (GKE), including secrets."""
_REGISTRIES: Final = "registryHosts"
"""Field of nodes with registries and the headers of requests to them (GKE), including secrets."""


def diagnostic_document(diagnostic: Finding, fields: Mapping[Where, str] = MappingProxyType({})) -> Diagnostic:
    """Return one finding as a document part.

    Args:
        diagnostic: The finding.
        fields: Field of the spec by position, if known.
    """
    return {
        "severity": diagnostic.severity,
        "id": rule_id(diagnostic.code),
        "code": diagnostic.code,
        "where": str(diagnostic.where),
        "position": position_of(diagnostic.where),
        "field": fields.get(diagnostic.where, ""),
        "message": diagnostic.seen,
        "why": diagnostic.why,
        "fix": diagnostic.fix,
    }


def silenced_part(
    silenced: Iterable[Silenced | Ignored], fields: Mapping[Where, str] = MappingProxyType({})
) -> list[SilencedPart]:
    """Return the findings that a spec or manifests accept; `fields` as for `diagnostic_document`."""
    return [{"finding": diagnostic_document(one.finding, fields), "reason": one.reason} for one in silenced]


def error_part(error: GpukubeError | None) -> list[Diagnostic] | None:
    """Return all findings of an error."""
    return [diagnostic_document(d) for d in error.diagnostics] if error else None


def position_of(where: Where) -> Position | None:
    """Return the position in a file; None for resources and for values of the command line."""
    return {"file": where.source, "line": where.line, "column": where.column} if where.line else None


def change_part(classified: ClassifiedChange, locator: Locator | None = None) -> Change:
    """Return one changed field, with its position in the spec if known."""
    change = classified.change
    # For a label, show all labels, since gpukube adds its own.
    return {
        "field": str(change.field),
        "old": plain(change.old),
        "new": plain(change.new),
        "kind": classified.row.kind,
        "sentence": classified.row.sentence,
        "declared": position_of(
            locator.at(change.field[0] if change.field[0] in ("labels", "tags") else ".".join(change.field))
        )
        if locator
        else None,
    }


def request_part(request: NativeRequest) -> Request:
    """Return a native call; user data and values of metadata, which may be secret, are replaced by their digests."""
    return {"service": request.service, "operation": request.operation, "params": _digested(plain(request.params))}


def _digested(value: object) -> object:
    if isinstance(value, dict):
        return {key: _digested_member(key, inner) for key, inner in value.items()}
    return [_digested(inner) for inner in value] if isinstance(value, list) else value


def _digested_member(key: str, value: object) -> object:
    if key == _METADATA and isinstance(value, dict):
        return {name: _digest(inner) for name, inner in value.items()}
    if key == _REGISTRIES:
        return _digest(json.dumps(value))
    return _digest(value) if _is_user_data(key, value) else _digested(value)


def _is_user_data(key: str, value: object) -> bool:
    return isinstance(value, str) and "".join(filter(str.isalpha, key)).lower() in _USER_DATA


def _digest(text: object) -> str:
    raw = str(text).encode()
    return f"({len(raw)} bytes, sha256:{hashlib.sha256(raw).hexdigest()[:16]})"


def gpu_part(machine: Machine | None) -> GpuModel | None:
    """Return the GPUs of a machine."""
    return {"model": str(machine.model), "count": machine.gpus} if machine else None


def node_range(nodes: Nodes) -> NodeRange:
    """Return the number of nodes."""
    return {"count": nodes.count, "min": nodes.minimum, "max": nodes.maximum, "autoscaled": nodes.autoscaled}


def live_range(observed: Observed) -> NodeRange | None:
    """Return how many nodes a live pool has and may have; None if its cloud does not report it."""
    fields, nodes = observed.fields, observed.nodes
    fixed, least, most = fields.get(COUNT), fields.get(LEAST), fields.get(MOST)
    count = next((one for one in (nodes, fixed, least) if isinstance(one, int)), None)
    if count is None:
        return None
    if isinstance(least, int) and isinstance(most, int):
        return {"count": count, "min": least, "max": most, "autoscaled": True}
    return {"count": count, "min": count, "max": count, "autoscaled": False}


def toleration_part(toleration: PodToleration) -> Toleration:
    """Return a toleration as it is written in a pod."""
    return {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }


def part_of(value: DataclassInstance) -> Any:  # noqa: ANN401 - the shape that matches this dataclass
    """Convert a value whose document part has the same fields: dataclasses to objects, tuples to lists."""
    return plain(asdict(value))


def counted(words: Iterable[str]) -> dict[str, int]:
    """Count equal words, in order of first occurrence."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


def plain(value: object) -> object:
    """Convert tuples and mappings to lists and dicts, sets to sorted lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(str(inner) for inner in value)
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value
