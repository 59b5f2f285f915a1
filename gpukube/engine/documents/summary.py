"""One-line summaries of documents: counts of planned actions or of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.plan import PlanDocument
    from gpukube.engine.documents.shapes.report import LintDocument, ValidationDocument

_ACTIONS: Final = {
    "no-op": "unchanged",
    "create": "to create",
    "update": "to update",
    "replace": "to replace",
    "delete": "to delete",
    "adopt": "to adopt",
    "conflict": "in conflict",
    "standby": "standing by",
}
_NAMED: Final = 3
"""Maximum number of objects named; the others are counted."""
_RELEASES: Final = {"install": "to install", "upgrade": "to upgrade", "conflict": "in conflict"}


def plan_summary(document: PlanDocument) -> str:
    """Return the counts of planned actions: "1 to create, 2 unchanged, 1 release to install"."""
    summary = document["summary"]
    message = [f"{count} {_ACTIONS[action]}" for action, count in summary["actions"].items()]
    message += [f"{_plural(count, 'release')} {_RELEASES[action]}" for action, count in summary["releases"].items()]
    if summary["nodeRepairs"]:
        message.append(f"{_plural(summary['nodeRepairs'], 'node repair')}")
    orders = [order for cluster in document["clusters"] for order in cluster.get("orders", ())]
    if writes := sum(order["action"] in ("create", "update") for order in orders):
        message.append(f"{_plural(writes, 'order')} of alternatives to write")
    if summary["undeclared"]:
        message.append(f"{summary['undeclared']} not declared")
    if summary["unplanned"]:
        message.append(f"{summary['unplanned']} unknown")
    if summary["clustersFailed"]:
        message.append(f"{_plural(summary['clustersFailed'], 'cluster')} could not be read")
    if summary["clustersUnknown"]:
        message.append(f"the inside of {_plural(summary['clustersUnknown'], 'cluster')} is unknown")
    return ", ".join(message) or "nothing declared"


def validation_summary(document: ValidationDocument | LintDocument) -> str:
    """Return the counts of findings: "ok: 2 pools on 1 cluster, 1 finding silenced", "1 error, 2 warnings"."""
    silenced = [f"{_plural(len(document['silenced']), 'finding')} silenced"] if document["silenced"] else []
    unjudged = _unjudged(document["notJudged"]) if document["kind"] == "Lint" else ""
    if document["valid"]:
        if document["kind"] == "Lint":
            right = f"{_plural(document['manifests'], 'object')}, {_plural(document['templates'], 'pod template')}"
            if document["resources"]:
                right += f", {document['resources']} resources outside of pods"
        else:
            right = f"{_plural(document['pools'], 'pool')} on {_plural(document['clusters'], 'cluster')}"
        return f"ok: {', '.join([right, *silenced])}{unjudged}"
    levels = (("error", document["errors"]), ("warning", document["warnings"]), ("hint", document["hints"]))
    return ", ".join([*(_plural(len(found), name) for name, found in levels if found), *silenced]) + unjudged


def _unjudged(objects: list[str]) -> str:
    """Return the objects that no rule could check: "; not judged: LimitRange/gpus (nvidia.com/gpu)"."""
    more = f" and {len(objects) - _NAMED} more" if len(objects) > _NAMED else ""
    return f"; not judged: {', '.join(objects[:_NAMED])}{more}" if objects else ""


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
