"""Requests on subresources (status, scale, log, eviction, binding, token) and access reviews.

In scope: their handlers. Out of scope: requests on objects (`app`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse, Response

from gpukube_sandbox.kube.http import accounttokens, execution
from gpukube_sandbox.kube.http.requests import Target, decoding, read_body, read_options, require_object
from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.eviction import evict
from gpukube_sandbox.kube.store.objects import spec, status
from gpukube_sandbox.kube.store.patches import patch_object
from gpukube_sandbox.kube.store.rbac import Access, User, rules_of, user_named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.requests import Request

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject


_POSTED = frozenset({"binding", "eviction", "token"})
REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})
"""API groups of access reviews."""


def is_denied(denied: Collection[tuple[str, str]], access: Access) -> bool:
    """Return whether a deny list contains a request; resources are "secrets" or "daemonsets.apps", "*" is any."""
    if not denied or access.path:
        return False
    named, verb = f"{access.resource}.{access.group}" if access.group else access.resource, access.verb
    return any(item in denied for item in ((verb, named), (verb, "*"), ("*", named), ("*", "*")))


def is_review(kind: Kind) -> bool:
    """Return whether a type is an access review, which is answered but not stored."""
    return kind.group in REVIEWS


def review(
    cluster: KubeCluster, kind: Kind, body: JsonObject, user: User, may: Callable[[User, Access], bool]
) -> JsonObject:
    """Answer a user's SubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, or SelfSubjectReview."""
    answer = {**body, "apiVersion": kind.api_version, "kind": kind.kind}
    answer.setdefault("metadata", {"creationTimestamp": None})
    requested = body.get("spec") or {}
    if kind.kind == "SelfSubjectReview":
        answer["status"] = {"userInfo": {"username": user.name, "groups": list(user.groups)}}
    elif kind.kind == "SelfSubjectRulesReview":
        rules = list(rules_of(cluster.store, user, requested.get("namespace", "")))
        paths = [rule for rule in rules if "nonResourceURLs" in rule]
        resources = [rule for rule in rules if "resources" in rule]
        answer["status"] = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": bool(cluster.denied)}
    else:
        if kind.kind == "SubjectAccessReview":
            user = user_named(requested.get("user", ""), requested.get("groups") or ())
        allowed = may(user, _requested_access(requested))
        answer["status"] = {"allowed": allowed} | ({} if allowed else {"reason": "no RBAC policy matched"})
    return answer


def _requested_access(requested: JsonObject) -> Access:
    path = requested.get("nonResourceAttributes")
    if path:
        return Access(path.get("verb", ""), path=path.get("path", ""))
    about = requested.get("resourceAttributes") or {}
    resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
    return Access(
        about.get("verb", ""), resource, about.get("group", ""), about.get("namespace", ""), about.get("name", "")
    )


async def serve(cluster: KubeCluster, request: Request, target: Target) -> Response:
    """Serve a request on a subresource.

    Raises:
        ApiProblem: 404, 405, 409, 422, 429, 501.
    """
    if target.part in _POSTED and request.method != "POST":
        raise problems.not_allowed()
    if target.part in execution.STREAMS:
        execution.refuse(cluster, request.query_params, target)
    if target.part == "proxy":
        return _configz(cluster, request, target)
    if target.part == "log":
        return await _log(cluster, request, target)
    if target.part == "eviction":
        return JSONResponse(await _evict(cluster, request, target), 201)
    if target.part == "binding":
        body = await read_body(request)
        cluster.store.bind(target.namespace, target.name, body["target"]["name"])
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return JSONResponse(done, 201)
    if target.part == "token":
        return JSONResponse(accounttokens.issue(cluster, target, await read_body(request)), 201)
    if target.part == "scale":
        return JSONResponse(await _scale(cluster, request, target))
    return JSONResponse(await _status(cluster, request, target))


def _configz(cluster: KubeCluster, request: Request, target: Target) -> Response:
    """Return the configuration of a node's kubelet."""
    if request.method != "GET":
        raise problems.not_allowed()
    cluster.store.get(target.kind, "", target.name)
    found = cluster.kubelet_config(target.name)
    if found is None:  # the message of a kube-apiserver whose kubelet does not answer
        raise problems.unavailable(f"error trying to reach service: dial tcp: lookup {target.name}: no such host")
    return JSONResponse(found)


async def _status(cluster: KubeCluster, request: Request, target: Target) -> JsonObject:
    store = cluster.store
    old = store.get(target.kind, target.namespace, target.name)
    if request.method == "GET":
        return old
    options = read_options(request)
    body = await read_body(request)
    if request.method == "PUT":
        sent = require_object(body, target)
        return store.update(target.kind, sent, part="status", manager=options.manager, dry_run=options.dry_run)
    form = request.headers.get("content-type", "").split(";")[0]
    if form == "application/apply-patch+yaml":
        config = require_object(body, target)
        applied, _ = store.apply(
            target.kind,
            config,
            manager=options.manager,
            part="status",
            force=options.force,
            dry_run=options.dry_run,
        )
        return applied
    new = patch_object(old, body, form, target.kind)
    with decoding(body):
        return store.update(target.kind, new, part="status", manager=options.manager, dry_run=options.dry_run)


async def _scale(cluster: KubeCluster, request: Request, target: Target) -> JsonObject:
    store = cluster.store
    old = store.get(target.kind, target.namespace, target.name)
    if request.method != "GET":
        body = await read_body(request)
        replicas = (body.get("spec") or {}).get("replicas", spec(old).get("replicas", 1))
        old = store.update(
            target.kind,
            {**old, "spec": {**old["spec"], "replicas": replicas}},
            manager=read_options(request).manager,
            dry_run=read_options(request).dry_run,
        )
    meta = {
        key: old["metadata"].get(key) for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": spec(old).get("replicas", 1)},
        "status": {"replicas": status(old).get("replicas", 0)},
    }


async def _log(cluster: KubeCluster, request: Request, target: Target) -> Response:
    pod = cluster.store.get(target.kind, target.namespace, target.name)
    containers = [item["name"] for item in [*spec(pod).get("containers", ()), *spec(pod).get("initContainers", ())]]
    container = request.query_params.get("container", "")
    if not container and len(spec(pod)["containers"]) > 1:
        names = [item["name"] for item in spec(pod)["containers"]]
        raise problems.bad_request(
            f"a container name must be specified for pod {target.name}, choose one of: [{' '.join(names)}]"
        )
    container = container or containers[0]
    if container not in containers:
        raise problems.bad_request(f"container {container} is not valid for pod {target.name}")
    lines = cluster.log_lines(pod["metadata"]["uid"], container)
    if not lines and status(pod).get("phase") == "Pending" and spec(pod).get("nodeName"):
        raise problems.bad_request(
            f'container "{container}" in pod "{target.name}" is waiting to start: ContainerCreating'
        )
    tail = request.query_params.get("tailLines")
    shown = lines[-int(tail) :] if tail else lines
    return PlainTextResponse("".join(f"{line}\n" for line in shown))


async def _evict(cluster: KubeCluster, request: Request, target: Target) -> JsonObject:
    body = await read_body(request)
    requested = (body.get("deleteOptions") if isinstance(body, dict) else None) or {}
    dry_run = read_options(request).dry_run or "All" in (requested.get("dryRun") or ())
    grace_s, uid = requested.get("gracePeriodSeconds"), (requested.get("preconditions") or {}).get("uid", "")
    evict(cluster.store, target.namespace, target.name, uid=uid, grace_s=grace_s, dry_run=dry_run)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
