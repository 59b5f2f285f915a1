"""The Kubernetes API calls that gpukube needs, as a protocol, and its client.

In scope: the only user of lightkube; every failure becomes AccessError or ClusterError. Out of scope: interpreting
responses. Why lightkube: docs/decisions/kubernetes-client.md.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import httpx2
from lightkube import ApiError
from lightkube.models.authorization_v1 import ResourceAttributes, SelfSubjectAccessReviewSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.operators import not_equal
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret
from lightkube.types import PatchType

from gpukube.cluster.kube.calls import UNAUTHORIZED, KubeCalls
from gpukube.cluster.kube.connection import Connection
from gpukube.cluster.kube.evictions import EvictionAnswer, eviction_answer
from gpukube.cluster.kube.failures import FAILURES
from gpukube.cluster.kube.lightkube_types import prepare_types
from gpukube.cluster.kube.limits import UNLIMITED
from gpukube.cluster.kube.releases import HELM_OWNER, SUPERSEDED
from gpukube.cluster.kube.views import NodeView, PodView, WorkloadView, is_drained, node_view, pod_view, workload_view
from gpukube.cluster.names import FIELD_MANAGER
from gpukube.core.jsontree import Tree, text, texts
from gpukube.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lightkube.core.client import FieldSelector, LabelSelector

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.limits import Caller
    from gpukube.cluster.kube.slices import SliceView
    from gpukube.core.values import KubeAccess

_Kept = TypeVar("_Kept")
_PAGE: Final = 500  # objects per response, like kubectl's --chunk-size
_FEW_NODES: Final = 10
"""Maximum number of nodes whose pods are listed per node; for more, all pods of the cluster are paged through."""
_CONFLICT = 409


class Kube(Protocol):
    """The API of one cluster. Thread-safe; every call ends within the connection's timeout.

    All methods raise AccessError (not authenticated or not allowed) and ClusterError (anything else).
    """

    @property
    def server(self) -> str:
        """Address of the API, for messages."""

    def version(self) -> str:
        """Return the version of the API server, "1.34.2"; the cheapest check that it answers."""

    def time(self) -> float | None:
        """Return the API server's time in whole seconds since the epoch; None if it sends none."""

    def nodes(self, labels: Mapping[str, str] | None = None) -> tuple[NodeView, ...]:
        """List nodes, all pages."""

    def pods_on(self, nodes: Collection[str]) -> tuple[tuple[str, str], ...]:
        """List (node, "namespace/name") of the pods that draining these nodes would evict."""

    def all_pods_on(self, nodes: Collection[str]) -> tuple[Tree, ...]:
        """List all pods of these nodes, as complete objects."""

    def evict(self, namespace: str, pod: str, uid: str) -> EvictionAnswer:
        """Request the eviction of the pod with this uid, with its own grace period."""

    def daemonsets(self, namespace: str = "") -> tuple[WorkloadView, ...]:
        """List DaemonSets of one namespace, or of all ("")."""

    def deployments(self, namespace: str = "") -> tuple[WorkloadView, ...]:
        """List Deployments of one namespace, or of all ("")."""

    def pods(self, namespace: str = "", labels: Mapping[str, str] | None = None, node: str = "") -> tuple[PodView, ...]:
        """List pods of one namespace, or of all (""), with these labels, on this node."""

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        """Read a ConfigMap's data; None if it does not exist."""

    def release_secrets(self, namespace: str = "", name: str = "", *, superseded: bool = False) -> tuple[Tree, ...]:
        """List Helm's Secrets; superseded revisions only on request."""

    def delete_secret(self, namespace: str, name: str) -> None:
        """Delete a Secret; do nothing if it does not exist."""

    def object_names(self, group: str, plural: str, versions: Iterable[str]) -> tuple[str, ...] | None:
        """List the names of cluster-scoped objects of a type; None if the cluster does not have the type."""

    def objects(
        self, kind: ApiType, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[Tree, ...] | None:
        """List objects of a type, of one namespace or of all (""); None if the cluster does not have the type."""

    def find_object(self, kind: ApiType, name: str, namespace: str = "") -> Tree | None:
        """Read one object of a type; None if it does not exist."""

    def change_object(self, kind: ApiType, live: Tree, operations: Sequence[Tree]) -> bool:
        """Apply a JSON patch (RFC 6902) to an object as read; return False if it has changed since, or is gone."""

    def create_object(self, kind: ApiType, obj: Tree) -> Tree:
        """Create an object; return it as stored."""

    def try_object(self, kind: ApiType, obj: Tree) -> str:
        """Apply an object in a dry run, forcing conflicts; return why the server rejects it, or ""."""

    def would_store(self, kind: ApiType, obj: Tree) -> Tree:
        """Create an object of the cluster in a dry run; return what the server would store."""

    def delete_object(self, kind: ApiType, name: str, namespace: str) -> None:
        """Delete an object with its dependents; do nothing if it does not exist."""

    def pod_log(self, namespace: str, name: str, lines: int, container: str = "") -> tuple[str, ...]:
        """Read the last log lines of a pod's container; the name is optional if there is only one."""

    def resource_slices(self) -> tuple[SliceView, ...]:
        """List the ResourceSlices of DRA; empty if the cluster does not have the type."""

    def ensure_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a namespace with these labels, or add the missing ones; other labels stay."""

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """Read a namespace's labels; None if it does not exist."""

    def may(self, verb: str, resource: str, *, group: str = "", namespace: str = "") -> bool:
        """Return whether this identity is allowed to do something (SelfSubjectAccessReview)."""

    def cleaning(self) -> Kube:
        """Return a client of the same cluster for cleanup, which neither a stop nor the run's timeout prevents."""

    def close(self) -> None:
        """Close the connections."""


def _named_if_drained(pod: Tree) -> tuple[str, str] | None:
    """Return node and "namespace/name" of a pod that a drain would evict."""
    name = f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
    return (text(pod, "spec", "nodeName"), name) if is_drained(pod) else None


def connect_kube(
    access: KubeAccess,
    timeout_s: float,
    calls: Caller = UNLIMITED,
    renewed: Callable[[], KubeAccess] | None = None,
) -> LightKube:
    """Create the client; makes no call yet.

    Args:
        access: See Connection.
        timeout_s: See Connection.
        calls: Runs each call.
        renewed: See Connection.

    Raises:
        AccessError: The kubeconfig cannot be used.
    """
    prepare_types()
    connection = Connection(access, timeout_s, renewed)
    return LightKube(connection, connection.server, calls)


class LightKube(KubeCalls):
    """Kube, implemented with lightkube."""

    def version(self) -> str:
        """See Kube."""
        response = self._version("reading the version")
        try:
            answer: object = response.json()
        except ValueError:
            answer = None
        if not text(answer, "gitVersion"):
            raise ClusterError(
                "this is not a Kubernetes API: /version has no gitVersion",
                where=self._server,
                fix="check the server address in the kubeconfig",
                code="not-kubernetes",
            )
        return text(answer, "gitVersion").removeprefix("v")

    def time(self) -> float | None:
        """See Kube."""
        written = self._version("reading its time").headers.get("date", "")
        try:
            return parsedate_to_datetime(written).timestamp()
        except ValueError:
            return None

    def _version(self, doing: str) -> httpx2.Response:
        return self._call(doing, lambda: self._transport.get("/version").raise_for_status())

    def nodes(self, labels: Mapping[str, str] | None = None) -> tuple[NodeView, ...]:
        """See Kube."""
        found = self._call(
            "listing nodes", lambda: list(self._client.list(Node, labels=dict(labels or {}), chunk_size=_PAGE))
        )
        return tuple(node_view(node.to_dict()) for node in found)

    def pods_on(self, nodes: Collection[str]) -> tuple[tuple[str, str], ...]:
        """See Kube."""
        return self._on_nodes(nodes, _named_if_drained)

    def all_pods_on(self, nodes: Collection[str]) -> tuple[Tree, ...]:
        """See Kube."""
        return self._on_nodes(nodes, lambda pod: pod)

    def _on_nodes(self, nodes: Collection[str], keep: Callable[[Tree], _Kept | None]) -> tuple[_Kept, ...]:
        """List the pods on some nodes and keep only what `keep` returns of each; pages are not kept."""

        def listed(fields: FieldSelector) -> list[_Kept]:
            pods = (pod.to_dict() for pod in self._client.list(Pod, namespace="*", fields=fields, chunk_size=_PAGE))
            kept = (keep(pod) for pod in pods if text(pod, "spec", "nodeName") in nodes)
            return [one for one in kept if one is not None]

        if len(nodes) > _FEW_NODES:
            return tuple(self._call("listing pods", lambda: listed({"status.phase": not_equal("Succeeded")})))
        each = [self._call("listing pods", partial(listed, {"spec.nodeName": name})) for name in nodes]
        return tuple(one for found in each for one in found)

    def evict(self, namespace: str, pod: str, uid: str) -> EvictionAnswer:
        """See Kube."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        doing = f"evicting pod {namespace}/{pod}"

        def post() -> httpx2.Response:
            # lightkube decodes the response as an Eviction and drops the details of a refusal, so use its transport.
            answer = self._transport.post(path, json=body)
            return answer.raise_for_status() if answer.status_code == UNAUTHORIZED else answer

        response = self._call(doing, post, changes=True)
        answer = eviction_answer(response.status_code, response.content, response.headers.get("retry-after", ""))
        if answer is None:
            raise self._explained(doing, httpx2.HTTPStatusError("", request=response.request, response=response))
        return answer

    def daemonsets(self, namespace: str = "") -> tuple[WorkloadView, ...]:
        """See Kube."""
        found = self._call(
            "listing daemonsets",
            lambda: list(self._client.list(DaemonSet, namespace=namespace or "*", chunk_size=_PAGE)),
        )
        return tuple(workload_view(item.to_dict(), "DaemonSet") for item in found)

    def deployments(self, namespace: str = "") -> tuple[WorkloadView, ...]:
        """See Kube."""
        found = self._call(
            "listing deployments",
            lambda: list(self._client.list(Deployment, namespace=namespace or "*", chunk_size=_PAGE)),
        )
        return tuple(workload_view(item.to_dict(), "Deployment") for item in found)

    def pods(self, namespace: str = "", labels: Mapping[str, str] | None = None, node: str = "") -> tuple[PodView, ...]:
        """See Kube."""
        fields: FieldSelector | None = {"spec.nodeName": node} if node else None
        found = self._call(
            "listing pods",
            lambda: list(
                self._client.list(
                    Pod, namespace=namespace or "*", labels=dict(labels or {}), fields=fields, chunk_size=_PAGE
                )
            ),
        )
        return tuple(pod_view(pod.to_dict()) for pod in found)

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        """See Kube."""
        found = self._find(f"reading config map {name}", lambda: self._client.get(ConfigMap, name, namespace=namespace))
        return None if found is None else texts(found.to_dict(), "data")

    def release_secrets(self, namespace: str = "", name: str = "", *, superseded: bool = False) -> tuple[Tree, ...]:
        """See Kube."""
        selector: LabelSelector = {**HELM_OWNER}
        if name:
            selector["name"] = name
        if not superseded:
            selector["status"] = not_equal(SUPERSEDED)
        found = self._call(
            "listing helm releases",
            lambda: list(self._client.list(Secret, namespace=namespace or "*", labels=selector, chunk_size=_PAGE)),
        )
        return tuple(secret.to_dict() for secret in found)

    def delete_secret(self, namespace: str, name: str) -> None:
        """See Kube."""
        self._find(
            f"deleting secret {name}", lambda: self._client.delete(Secret, name, namespace=namespace), changes=True
        )

    def ensure_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """See Kube."""
        present = self.namespace_labels(name)
        doing = f"creating namespace {name}"
        if present is None:
            desired = Namespace(metadata=ObjectMeta(name=name, labels=dict(labels)))

            def create() -> Namespace:
                return self._client.create(desired, field_manager=FIELD_MANAGER)

            try:
                self._calls(self._server, doing, lambda: self._renewing(create), changes=True)
            except ApiError as error:
                if error.response.status_code != _CONFLICT:
                    raise self._explained(doing, error) from error
                present = self.namespace_labels(name) or {}
            except FAILURES as error:
                raise self._explained(doing, error) from error
        if present is not None and (missing := {k: v for k, v in labels.items() if present.get(k) != v}):
            patch = {"metadata": {"labels": missing}}
            self._call(
                f"labelling namespace {name}",
                lambda: self._client.patch(
                    Namespace, name, patch, patch_type=PatchType.MERGE, field_manager=FIELD_MANAGER
                ),
                changes=True,
            )

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """See Kube."""
        found = self._find(f"reading namespace {name}", lambda: self._client.get(Namespace, name))
        return None if found is None else texts(found.to_dict(), "metadata", "labels")

    def may(self, verb: str, resource: str, *, group: str = "", namespace: str = "") -> bool:
        """See Kube."""
        requested = ResourceAttributes(verb=verb, resource=resource, group=group, namespace=namespace)
        review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resourceAttributes=requested))
        answer = self._call("checking permissions", lambda: self._client.create(review))
        return text(answer.to_dict(), "status", "allowed") == "true"

    def cleaning(self) -> Kube:
        """See Kube."""
        return LightKube(self._connection, self._server, self._calls.cleaning())

    def close(self) -> None:
        """See Kube."""
        self._connection.close()
