"""Whether an object may be stored, by its values.

Lives here: which rules are for which type, and the refusal with all that is wrong. Must not live here: a rule.

Rules are generators of causes: of the new object, and of the one that it replaces, if any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.validation.metadata import check_metadata
from gpukube_sandbox.kube.store.validation.pods import check_pod
from gpukube_sandbox.kube.store.validation.updates import check_pod_update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

    Rule = Callable[[JsonObject, JsonObject | None], Iterator[Cause]]

RULES: Mapping[str, tuple[Rule, ...]] = {
    "Pod": (check_pod, check_pod_update),
}
"""Built-in type -> its rules."""


def judge(kind: Kind, new: JsonObject, old: JsonObject | None = None) -> None:
    """Refuse an object whose values the API server does not take.

    Raises:
        ApiProblem: 422, with all causes.
    """
    rules = () if kind.custom else RULES.get(kind.kind, ())
    causes = list(dict.fromkeys(cause for rule in (check_metadata, *rules) for cause in rule(new, old)))
    if not causes:
        return
    told = [f"{cause.field}: {cause.text}" for cause in causes]
    message = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    name = str((new.get("metadata") or {}).get("name", ""))
    details: JsonObject = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.kind}
    details["causes"] = [{"reason": one.reason, "message": one.text, "field": one.field} for one in causes]
    word = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    raise ApiProblem(422, "Invalid", f'{word} "{name}" is invalid: {message}', details)
