"""Who may do what, by roles, impersonation and reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.rbac import SANDBOX_ADMIN, Access, User, is_allowed, user_named
from gpukube_sandbox.kube.store.store import Store
from gpukube_sandbox.permits import PermitBook

from .test_tables import ask, cluster

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

GROUP = "rbac.authorization.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1"


def bound(held: Store, role: str, subject: JsonObject, namespace: str = "") -> Store:
    """Bind a ClusterRole, in one namespace or everywhere."""
    kind = CORE["rolebindings" if namespace else "clusterrolebindings"]
    place = {"namespace": namespace} if namespace else {}
    named = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    held.create(kind, {"metadata": {"name": "b", **place}, "roleRef": named, "subjects": [subject]})
    return held


@pytest.mark.parametrize(
    ("role", "access", "allowed"),
    [
        pytest.param("view", Access("get", "pods", namespace="default"), True, id="view-reads"),
        pytest.param("view", Access("get", "secrets", namespace="default"), False, id="view-reads-no-secrets"),
        pytest.param("view", Access("delete", "pods", namespace="default"), False, id="view-writes-not"),
        pytest.param("edit", Access("create", "pods/exec", namespace="default"), True, id="edit-enters-pods"),
        pytest.param("edit", Access("create", "rolebindings", GROUP, "default"), False, id="edit-grants-not"),
        pytest.param("admin", Access("create", "rolebindings", GROUP, "default"), True, id="admin-grants"),
        pytest.param("admin", Access("get", "pods", namespace="other"), False, id="only-in-its-namespace"),
        pytest.param("admin", Access("get", "nodes"), False, id="nothing-of-the-cluster"),
    ],
)
def test_role_when_bound_in_a_namespace_then_it_holds_there(role: str, access: Access, *, allowed: bool) -> None:
    held = bound(Store(ManualClock()), role, {"kind": "User", "name": "bob"}, "default")

    assert is_allowed(held, user_named("bob"), access) is allowed
    assert not is_allowed(held, user_named("mallory"), access)


@pytest.mark.parametrize(
    "user",
    [user_named("eve", ["team"]), user_named("system:serviceaccount:ci:runner"), SANDBOX_ADMIN],
    ids=["group", "account", "admin"],
)
def test_role_when_bound_to_group_or_account_then_its_members_have_it(user: User) -> None:
    held = bound(Store(ManualClock()), "cluster-admin", {"kind": "Group", "name": "team"})
    subject = {"kind": "ServiceAccount", "name": "runner", "namespace": "ci"}
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    held.create(CORE["clusterrolebindings"], {"metadata": {"name": "c"}, "roleRef": role, "subjects": [subject]})

    assert is_allowed(held, user, Access("delete", "nodes", name="n"))
    assert is_allowed(held, user, Access("get", path="/metrics"))


def test_anonymous_when_asking_then_health_and_version_alone() -> None:
    of = cluster()
    paths = ("/readyz", "/version", "/api", "/api/v1/nodes")

    found = {path: ask(of, path, headers={"authorization": ""}).status_code for path in paths}

    assert found == {"/readyz": 200, "/version": 200, "/api": 403, "/api/v1/nodes": 403}
    of.admits_anonymous = False
    assert ask(of, "/readyz", headers={"authorization": ""}).status_code == 401


def test_review_when_for_somebody_else_then_their_rights_decide() -> None:
    of = cluster()
    wanted = {"verb": "list", "resource": "pods", "namespace": "default"}
    asked = {"spec": {"resourceAttributes": wanted}}
    theirs = {"spec": {"resourceAttributes": wanted, "user": "bob"}}

    def allowed(path: str, body: JsonObject, **headers: str) -> bool:
        answer = ask(of, f"{REVIEWS}/{path}", method="POST", json=body, headers=headers).json()
        return bool(answer["status"]["allowed"])

    assert allowed("selfsubjectaccessreviews", asked)
    assert not allowed("selfsubjectaccessreviews", asked, **{"impersonate-user": "bob"})
    assert not allowed("subjectaccessreviews", theirs)
    bound(of.store, "view", {"kind": "User", "name": "bob"})
    assert allowed("selfsubjectaccessreviews", asked, **{"impersonate-user": "bob"})
    assert allowed("subjectaccessreviews", theirs)


def test_impersonation_when_the_user_may_not_then_403() -> None:
    of = cluster()
    of.denied.add(("impersonate", "users"))

    answer = ask(of, "/api/v1/nodes", headers={"impersonate-user": "bob"})

    assert answer.status_code == 403
    assert 'cannot impersonate resource "users"' in answer.json()["message"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_used_when_a_role_is_only_tried_then_what_it_grants_is_not_among_it(*, dry_run: bool) -> None:
    book = PermitBook()
    rules = [{"verbs": ["watch"], "apiGroups": [""], "resources": ["services/finalizers"]}]
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "trial"}, "rules": rules}
    query, agent = {"dryRun": "All"} if dry_run else {}, {"user-agent": "gpukube/1.0"}

    said = ask(
        cluster(), f"/apis/{GROUP}/v1/clusterroles", method="POST", json=role, params=query, headers=agent, permits=book
    )

    assert said.is_success
    granted = set() if dry_run else {"watch services/finalizers"}
    assert book.used == {f"create clusterroles.{GROUP}", *granted}
