"""Leases as locks: what a client needs so that only one run holds one, asked of the application in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.rbac import Access, is_allowed, user_named

from .test_rbac import bound
from .test_tables import ask, cluster

if TYPE_CHECKING:
    import httpx

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

GROUP = "coordination.k8s.io"
LEASES = f"/apis/{GROUP}/v1/namespaces/default/leases"
MOMENT = "2026-01-01T00:00:00.000001Z"
MERGE = {"content-type": "application/merge-patch+json"}


def lease(holder: str, **more: object) -> JsonObject:
    body = {"holderIdentity": holder, "leaseDurationSeconds": 60, "acquireTime": MOMENT, "renewTime": MOMENT}
    known = {"apiVersion": f"{GROUP}/v1", "kind": "Lease", "metadata": {"name": "x", **more}}
    return {**known, "spec": body}


def make(of: KubeCluster, holder: str = "a") -> httpx.Response:
    return ask(of, LEASES, method="POST", json=lease(holder))


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def test_lease_when_types_are_listed_then_it_is_among_them_with_all_verbs() -> None:
    (row,) = ask(cluster(), f"/apis/{GROUP}/v1").json()["resources"]

    assert (row["name"], row["kind"], row["namespaced"]) == ("leases", "Lease", True)
    verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(row["verbs"]) == verbs


def test_lease_when_documents_are_read_then_they_declare_its_fields() -> None:
    of = cluster()
    document = ask(of, f"/openapi/v3/apis/{GROUP}/v1").json()
    found = document["components"]["schemas"]["io.k8s.api.coordination.v1.LeaseSpec"]["properties"]

    assert set(found) >= {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}
    assert "io.k8s.api.coordination.v1.LeaseSpec" in ask(of, "/openapi/v2").json()["definitions"]


def test_lease_when_two_create_it_then_the_second_is_told() -> None:
    of = cluster()

    assert make(of).status_code == 201
    assert refusal(make(of, "b")) == (409, "AlreadyExists")
    assert ask(of, f"{LEASES}/x").json()["spec"]["holderIdentity"] == "a"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_lease_when_two_take_it_over_from_one_version_then_one_wins(method: str) -> None:
    of = cluster()
    seen = make(of).json()["metadata"]["resourceVersion"]

    def take(holder: str) -> httpx.Response:
        headers = MERGE if method == "PATCH" else {}
        return ask(of, f"{LEASES}/x", method=method, json=lease(holder, resourceVersion=seen), headers=headers)

    assert take("b").status_code == 200
    assert refusal(take("c")) == (409, "Conflict")
    assert ask(of, f"{LEASES}/x").json()["spec"]["holderIdentity"] == "b"


def test_lease_when_it_has_changed_since_then_it_is_not_deleted() -> None:
    of = cluster()
    seen = make(of).json()["metadata"]["resourceVersion"]
    assert ask(of, f"{LEASES}/x", method="PUT", json=lease("b")).status_code == 200

    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": seen}}

    assert refusal(ask(of, f"{LEASES}/x", method="DELETE", json=options)) == (409, "Conflict")
    assert ask(of, f"{LEASES}/x", method="DELETE").status_code == 200


def test_lease_when_applied_by_two_then_the_second_needs_force_and_an_old_version_is_refused() -> None:
    of = cluster()

    def applied(holder: str, query: str, **more: object) -> httpx.Response:
        headers = {"content-type": "application/apply-patch+yaml"}
        content = json.dumps(lease(holder, **more))
        return ask(of, f"{LEASES}/x?fieldManager={query}", method="PATCH", content=content, headers=headers)

    made = applied("a", "one")
    assert made.status_code == 201
    assert refusal(applied("b", "two")) == (409, "Conflict")
    assert applied("b", "two&force=true").json()["spec"]["holderIdentity"] == "b"
    stale = applied("c", "two", resourceVersion=made.json()["metadata"]["resourceVersion"])
    assert refusal(stale) == (409, "Conflict")


def test_lease_when_denied_then_403_and_by_role_its_verbs_only() -> None:
    of = cluster()
    of.denied.add(("create", f"leases.{GROUP}"))
    assert refusal(make(of)) == (403, "Forbidden")

    rules = [{"apiGroups": [GROUP], "resources": ["leases"], "verbs": ["get", "create", "update"]}]
    of.store.create(CORE["clusterroles"], {"metadata": {"name": "locks"}, "rules": rules})
    held = bound(of.store, "locks", {"kind": "User", "name": "bob"}, "default")
    verbs = ["get", "create", "update", "delete"]
    allowed = [is_allowed(held, user_named("bob"), Access(verb, "leases", GROUP, "default")) for verb in verbs]
    assert allowed == [True, True, True, False]


@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123Z", "now"])
def test_lease_when_a_time_has_not_six_digits_then_it_cannot_be_decoded(moment: str) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"renewTime": moment}}
    with pytest.raises(ApiProblem, match=f'Lease in version "v1" cannot be handled.*"{moment}"') as caught:
        cluster().store.create(CORE["leases"], body)
    assert caught.value.code == 400


def test_lease_when_the_sandbox_is_ahead_then_its_holder_reads_the_times_that_it_wrote() -> None:
    elapsed = [0.0]
    of = cluster(ScaledClock(60.0, monotonic=lambda: elapsed[0]))
    elapsed[0] = 600.0
    make(of)

    found = ask(of, f"{LEASES}/x").json()

    assert (found["spec"]["acquireTime"], found["spec"]["renewTime"]) == (MOMENT, MOMENT)
    assert "generation" not in found["metadata"]
