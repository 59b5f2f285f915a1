"""Status of objects that count pods: disruption budgets and quotas.

Lives here: `kubectl get pdb` and `kubectl describe quota` tell the truth. Must not live here: refusing (`eviction`,
`admission`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.sandbox.kube.store.admission import usage
from gpukube.sandbox.kube.store.eviction import covers, weigh
from gpukube.sandbox.kube.store.objects import meta, namespace_of, spec, status
from gpukube.sandbox.kube.store.quantities import written

if TYPE_CHECKING:
    from gpukube.sandbox.clock import Clock
    from gpukube.sandbox.kube.store.objectapi import ObjectApi
    from gpukube.sandbox.kube.store.objects import JsonObject


class Disruptions:
    """Keeps the numbers of budgets and quotas."""

    watches = ("poddisruptionbudgets", "resourcequotas", "pods")
    stands_for = "kube-controller-manager"

    def __init__(self, api: ObjectApi, _clock: Clock) -> None:
        self._api = api

    async def reconcile(self) -> float | None:
        """Bring every budget's and quota's status up to date."""
        budgets = await self._api.list("poddisruptionbudgets")
        quotas = await self._api.list("resourcequotas")
        if not budgets and not quotas:
            return None
        pods = await self._api.list("pods")
        keepers = [obj for plural in ("replicasets", "statefulsets") for obj in await self._api.list(plural)]
        scale = {meta(obj)["uid"]: int(spec(obj).get("replicas", 1)) for obj in keepers}
        for budget in budgets:
            found = weigh(budget, [pod for pod in pods if covers(budget, pod)], scale)
            numbers: JsonObject = {
                "currentHealthy": found.healthy,
                "desiredHealthy": found.needed,
                "disruptionsAllowed": found.spare,
                "expectedPods": found.expected,
                "observedGeneration": meta(budget).get("generation", 1),
            }
            await self._write("poddisruptionbudgets", budget, numbers)
        for quota in quotas:
            hard: dict[str, str] = spec(quota).get("hard") or {}
            used = usage([pod for pod in pods if namespace_of(pod) == namespace_of(quota)], hard)
            told = {name: written(str(amount)) for name, amount in used.items()}
            await self._write("resourcequotas", quota, {"hard": hard, "used": told})
        return None

    async def _write(self, plural: str, obj: JsonObject, numbers: JsonObject) -> None:
        if any(status(obj).get(key) != value for key, value in numbers.items()):
            await self._api.patch_status(plural, obj, numbers)
