"""The Kubernetes API of one cluster over HTTP.

In scope: the Starlette application: authorization, routing, status codes, streams. Out of scope: what happens to
objects (`store`, controllers).
"""

from __future__ import annotations

import json
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from gpukube_sandbox.kube.http import accounttokens, discovery, execution, openapi_v2, openapi_v3, subresources, tables
from gpukube_sandbox.kube.http.moments import Lead, shift_times_back
from gpukube_sandbox.kube.http.pages import read_page
from gpukube_sandbox.kube.http.requests import (
    Target,
    check_accept,
    check_dry_run,
    check_identity,
    decoding,
    parse_target,
    read_body,
    read_options,
    require_object,
)
from gpukube_sandbox.kube.http.watching import WatchQuery, watch
from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.escalation import check_grant, grant_of
from gpukube_sandbox.kube.store.objects import labels
from gpukube_sandbox.kube.store.patches import patch_object
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.rbac import ANONYMOUS, Access, is_allowed, user_named
from gpukube_sandbox.kube.store.schema import check_applied, check_sent
from gpukube_sandbox.kube.store.selectors import FIELD_LABELS, field_test, label_test
from gpukube_sandbox.kube.store.validation.custom import schema_of, unknown_fields
from gpukube_sandbox.permits import PermitBook, access_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import HTTPConnection, Request
    from starlette.websockets import WebSocket

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.rbac import User

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_APPLY = "application/apply-patch+yaml"
_WATCH_S = 1800.0
_API_PARTS, _APIS_PARTS = 2, 3
"""Number of parts of /api/v1 and /apis/apps/v1; longer paths are resources."""


def make_app(cluster: KubeCluster, permits: PermitBook | None = None) -> Starlette:
    """Return the application that serves a cluster's API (its `state.cluster`); it can be mounted under any path."""
    api = _Api(cluster, permits or PermitBook())
    routes = [Route("/{path:path}", api.serve, methods=_METHODS), WebSocketRoute("/{path:path}", api.serve_socket)]
    app = Starlette(routes=routes)
    app.state.cluster = cluster
    return app


class _Api:
    def __init__(self, cluster: KubeCluster, permits: PermitBook) -> None:
        self._cluster = cluster
        self._permits = permits
        self._store = cluster.store
        self._lead = Lead(cluster.clock)

    async def serve(self, request: Request) -> Response:
        response = await self._respond(request)
        # As a real API server sets it; without it, client-go's discovery cache treats a response of a fast clock as
        # fresh.
        response.headers["cache-control"] = "no-cache, private"
        if response.status_code < HTTPStatus.BAD_REQUEST:
            # Not moved back, so that two responses show how much sandbox time has passed between them. A refusal has
            # the wall-clock date, by which clients detect that their own clock is wrong.
            response.headers["date"] = formatdate(self._cluster.clock.now(), usegmt=True)
        return response

    async def _respond(self, request: Request) -> Response:
        try:
            response = await self._route(request, self._user_of(request))
        except ApiProblem as problem:
            return _answer(problem.as_status(), problem.code)
        if isinstance(response, JSONResponse):
            response.body = shift_times_back(bytes(response.body), self._lead.of(request))  # of the same length
        return response

    async def serve_socket(self, socket: WebSocket) -> None:
        try:
            user = self._user_of(socket)
            target = parse_target(_parts(socket), self._store.kinds)
            if target.part not in execution.STREAMS:
                raise problems.no_such_path()
            self._require_allowed(user, _access("create", target), socket)
            await execution.serve(self._cluster, socket, target)
        except ApiProblem as problem:
            await socket.send_denial_response(_answer(problem.as_status(), problem.code))

    def _user_of(self, request: HTTPConnection) -> User:
        """Return the authenticated user, or the user that it impersonates.

        Raises:
            ApiProblem: 401 for an unknown token, 403 if impersonation is not allowed.
        """
        token = request.headers.get("authorization", "")
        user: User | None = self._cluster.user
        if token != f"Bearer {self._cluster.token}":
            user = accounttokens.user_of(self._cluster, token.removeprefix("Bearer ")) if token else None
            if user is None and (token or not self._cluster.admits_anonymous):
                raise problems.unauthorized()
        user = user or ANONYMOUS
        name, groups = request.headers.get("impersonate-user"), request.headers.getlist("impersonate-group")
        if name is None and not groups:
            return user
        if not name:
            raise problems.bad_request("requested to impersonate groups without a user")
        for resource, target in [("users", name), *(("groups", group) for group in groups)]:
            self._require_allowed(user, Access("impersonate", resource, name=target), request)
        return user_named(name, groups)

    async def _route(self, request: Request, user: User) -> Response:
        parts = _parts(request)
        if len(parts) <= {"api": _API_PARTS, "apis": _APIS_PARTS}.get("".join(parts[:1]), len(parts)):
            self._require_allowed(user, Access(request.method.lower(), path="/" + "/".join(parts)), request)
        about = self._about(parts, request.headers.get("accept", ""))
        if about is not None:
            return about
        if parts[0] not in {"api", "apis"}:
            raise problems.no_such_path()
        target = parse_target(parts, self._store.kinds)
        verb = _verb(request, target)
        self._require_allowed(user, _access(verb, target), request)
        if target.part:
            return await subresources.serve(self._cluster, request, target)
        if subresources.is_review(target.kind):
            reviewed = subresources.review(self._cluster, target.kind, await read_body(request), user, self._is_allowed)
            return _answer(reviewed, 201)
        check_accept(request.headers.get("accept", ""))
        return await self._objects(verb, request, target, user)

    def _about(self, parts: list[str], accept: str) -> Response | None:
        if parts[:1] in (["healthz"], ["livez"], ["readyz"]):
            return PlainTextResponse("ok")
        if parts in (["api"], ["apis"]) and discovery.AGGREGATED in accept:
            whole = discovery.aggregated(list(self._store.kinds.values()), core=parts == ["api"])
            return Response(json.dumps(whole), media_type=discovery.AGGREGATED)
        if parts == ["openapi", "v2"]:
            body, form = openapi_v2.encoded(self._store.kinds.values(), accept)
            return Response(body, media_type=form)
        if parts[:2] == ["openapi", "v3"]:
            described = openapi_v3.encoded(self._store, parts[2:])
            if described is None:
                raise problems.no_such_path()
            return Response(described, media_type="application/json")
        found = self._document(parts)
        if found is not None and not found:
            raise problems.no_such_path()
        return _answer(found) if found else None

    def _document(self, parts: list[str]) -> JsonObject | None:
        kinds = list(self._store.kinds.values())
        match parts:
            case []:
                return discovery.paths(kinds)
            case ["version"]:
                return discovery.version_info(self._cluster.kubernetes_version)
            case ["api"]:
                return discovery.core_versions()
            case ["apis", *group] if len(group) <= 1:
                return discovery.group_list(kinds, "".join(group))
            case ["api", version]:
                return discovery.resource_list(kinds, "", version)
            case ["apis", group, version]:
                return discovery.resource_list(kinds, group, version)
            case _:
                return {} if parts[0] == "openapi" else None

    def _require_allowed(self, user: User, access: Access, request: HTTPConnection) -> None:
        """Record the required permission, unless every user has it: discovery, and reviews of their own access."""
        if access.resource and access.group not in subresources.REVIEWS:
            needed = access_name(access.verb, access.resource, access.group, access.namespace)
            self._permits.note([needed], request.scope["headers"])
        if not self._is_allowed(user, access):
            raise problems.forbidden(user.name, access)

    def _is_allowed(self, user: User, access: Access) -> bool:
        """Return whether the deny list, then the roles, allow a user's access."""
        denied = self._cluster.denied | self._permits.denied_accesses()
        return not subresources.is_denied(denied, access) and is_allowed(self._store, user, access)

    async def _objects(self, verb: str, request: Request, target: Target, user: User) -> Response:
        if (request.method == "POST" and target.name) or (request.method in {"PUT", "PATCH"} and not target.name):
            raise problems.not_allowed()
        if target.kind.idle and request.method != "GET":
            raise problems.not_emulated(target.kind.plural, target.kind.group, "nothing here would act on them")
        if verb in {"watch", "list", "get"}:
            return {"watch": self._watch, "list": self._list, "get": self._get}[verb](request, target)
        if verb in {"create", "update", "patch"}:
            writes = {"create": self._create, "update": self._replace, "patch": self._patch}
            return await writes[verb](request, target, user)
        return await (self._delete if verb == "delete" else self._delete_all)(request, target)

    # reading

    def _form(self, request: Request, target: Target) -> tables.TableForm | None:
        """Return how to format tables; None if the client does not request them."""
        if not tables.is_requested(request):
            return None
        include = request.query_params.get("includeObject", "Metadata")
        return tables.TableForm(target.kind, self._store.definition_of(target.kind), self._cluster.clock.now(), include)

    def _get(self, request: Request, target: Target) -> Response:
        found, form = self._store.get(target.kind, target.namespace, target.name), self._form(request, target)
        return _answer(form.table([found]) if form else found)

    def _found(self, request: Request, target: Target) -> list[JsonObject]:
        selects = _selector(request, target)
        return [obj for obj in self._store.all_of(target.kind, target.namespace) if selects(obj)]

    def _list(self, request: Request, target: Target) -> Response:
        page = read_page(self._store, target, request.query_params, _selector(request, target))
        form, kind = self._form(request, target), target.kind
        if form:
            return _answer(form.table(page.items, str(page.version), **page.more))
        meta = {"resourceVersion": str(page.version)} | page.more
        return _answer(
            {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": page.items}
        )

    def _watch(self, request: Request, target: Target) -> Response:
        query = request.query_params
        version = query.get("resourceVersion", "")
        initial = query.get("sendInitialEvents") == "true"
        watch_query = WatchQuery(
            selects=_selector(request, target),
            version=None if initial or version in {"", "0"} else int(version),
            initial=initial,
            bookmarks=query.get("allowWatchBookmarks") == "true",
            timeout_s=float(query.get("timeoutSeconds", _WATCH_S)),
        )

        async def lines() -> AsyncIterator[bytes]:
            try:
                async for event in watch(self._store, target.kind, target.namespace, watch_query):
                    form = self._form(request, target)  # for each event, because it contains ages
                    shown = form.event(event) if form else event
                    yield shift_times_back(msgspec.json.encode(shown), self._cluster.clock.lead_s) + b"\n"
            except ApiProblem as problem:
                yield json.dumps({"type": "ERROR", "object": problem.as_status()}).encode() + b"\n"

        return StreamingResponse(lines(), media_type="application/json")

    # writing

    def _check_grant(
        self, user: User, target: Target, new: JsonObject, old: JsonObject | None, request: Request
    ) -> None:
        """Reject an object that grants more than its writer has, and record what it grants as required permissions.

        A dry run grants nothing, so its permissions are recorded only when the object is stored.
        """
        grant = grant_of(self._store, target.kind, new, old)
        if grant is None:
            return
        if not read_options(request).dry_run:
            needed = (access_name(a.verb, a.resource, a.group, a.namespace) for a in grant.accesses() if a.resource)
            self._permits.note(needed, request.scope["headers"])
        check_grant(self._store, user, target.kind, new["metadata"]["name"], grant)

    def _check_fields(self, kind: Kind, obj: JsonObject, validation: str) -> list[str]:
        """Check an object's fields by its type or definition, as `fieldValidation` requests; return the warnings."""
        definition = self._store.definition_of(kind)
        if definition is None:
            return check_sent(kind.group, kind.kind, obj, validation)
        unknown = [f'unknown field "{name}"' for name in unknown_fields(obj, schema_of(definition, kind.version))]
        if unknown and validation == "Strict":
            message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            raise problems.bad_request(f"{message}strict decoding error: {', '.join(unknown)}")
        return unknown if validation in {"", "Warn"} else []

    async def _create(self, request: Request, target: Target, user: User) -> Response:
        options = read_options(request)
        if not await request.body():
            text = (
                f"the object provided is unrecognized (must be of type {target.kind.kind}): couldn't get version/kind"
            )
            raise problems.bad_request(f"{text}; json parse error: unexpected end of JSON input (<empty>)")
        obj = require_object(await read_body(request), target)
        self._check_grant(user, target, obj, None, request)
        warnings = self._check_fields(target.kind, obj, options.validation)
        created = self._store.create(target.kind, obj, manager=options.manager, dry_run=options.dry_run)
        return _answer(created, 201, warnings)

    async def _replace(self, request: Request, target: Target, user: User) -> Response:
        options = read_options(request)
        obj = require_object(await read_body(request), target)
        before = self._store.find(target.kind, target.namespace, target.name)
        self._check_grant(user, target, obj, before, request)
        warnings = self._check_fields(target.kind, obj, options.validation)
        stored = self._store.update(target.kind, obj, manager=options.manager, dry_run=options.dry_run)
        return _answer(stored, 200, warnings)

    async def _patch(self, request: Request, target: Target, user: User) -> Response:
        options = read_options(request)
        body = await read_body(request)
        form = request.headers.get("content-type", "").split(";")[0]
        kind = target.kind
        if form == _APPLY:
            config = require_object(body, target)
            if config["metadata"].get("managedFields"):
                raise problems.bad_request("metadata.managedFields must be nil")
            check_applied(kind.group, kind.kind, config)
            before = self._store.find(kind, target.namespace, target.name)
            if before is None:  # kubernetes handlers/patch.go: an apply that creates needs create permission too
                self._require_allowed(user, _access("create", target), request)
            self._check_grant(user, target, {**(before or {}), **config}, before, request)
            obj, created = self._store.apply(
                kind, config, manager=options.manager, force=options.force, dry_run=options.dry_run
            )
            return _answer(obj, 201 if created else 200)
        old = self._store.get(kind, target.namespace, target.name)
        new = patch_object(old, body, form, kind)
        check_identity(new, old, target)
        self._check_grant(user, target, new, old, request)
        with decoding(body):
            warnings = self._check_fields(kind, new, options.validation)
            stored = self._store.update(kind, new, manager=options.manager, dry_run=options.dry_run)
        return _answer(stored, 200, warnings)

    async def _delete(self, request: Request, target: Target) -> Response:
        options = await _delete_options(request)
        gone = self._store.delete(target.kind, target.namespace, target.name, **options)
        if self._store.find(target.kind, target.namespace, target.name) is not None:
            return _answer(self._store.get(target.kind, target.namespace, target.name))
        details = {"name": target.name, "kind": target.kind.plural, "uid": gone["metadata"]["uid"]}
        return _answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    async def _delete_all(self, request: Request, target: Target) -> Response:
        options = await _delete_options(request)
        found = self._found(request, target)
        for obj in found:
            meta = obj["metadata"]
            self._store.delete(target.kind, meta.get("namespace", ""), meta["name"], **options)
        return _answer(
            {"kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version, "metadata": {}, "items": found}
        )


def _access(verb: str, target: Target) -> Access:
    resource = f"{target.kind.plural}/{target.part}" if target.part else target.kind.plural
    namespace = target.name if target.kind.kind == "Namespace" else target.namespace
    return Access(verb, resource, target.kind.group, namespace, target.name)


def _parts(request: HTTPConnection) -> list[str]:
    return [part for part in request.path_params["path"].split("/") if part]


def _selector(request: Request, target: Target) -> Callable[[JsonObject], bool]:
    by_label = label_test(request.query_params.get("labelSelector", ""))
    by_field = field_test(request.query_params.get("fieldSelector", ""), FIELD_LABELS.get(target.kind.kind, ()))
    if target.name:
        return lambda obj: obj["metadata"]["name"] == target.name
    return lambda obj: by_label(labels(obj)) and by_field(obj)


def _verb(request: Request, target: Target) -> str:
    if request.method == "GET":
        if request.query_params.get("watch") in {"true", "1"}:
            return "watch"
        return "get" if target.name else "list"
    if request.method == "HEAD":
        raise problems.not_allowed()
    if request.method == "DELETE" and not target.name:
        return "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]


_POLICIES = ("Foreground", "Background", "Orphan")


async def _delete_options(request: Request) -> JsonObject:
    body = await read_body(request)
    body_options: JsonObject = body if isinstance(body, dict) else {}
    query = request.query_params
    check_dry_run(body_options.get("dryRun") or query.getlist("dryRun"), "DeleteOptions")
    grace = body_options.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    if grace is not None and not str(grace).removeprefix("-").isdigit():
        raise problems.bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
    policy = body_options.get("propagationPolicy") or query.get("propagationPolicy") or "Background"
    if policy not in _POLICIES:
        known = ", ".join(f'"{one}"' for one in (*_POLICIES, "nil"))
        text = f'propagationPolicy: Unsupported value: "{policy}": supported values: {known}'
        raise problems.invalid("DeleteOptions", "", text, "meta.k8s.io")
    if body_options.get("propagationPolicy") and body_options.get("orphanDependents") is not None:
        text = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        raise problems.invalid("DeleteOptions", "", f"propagationPolicy: {text}", "meta.k8s.io")
    return {
        "preconditions": body_options.get("preconditions") or {},
        "grace_s": None if grace is None else int(grace),
        "orphan": policy == "Orphan" or body_options.get("orphanDependents") is True,
        "dry_run": "All" in (body_options.get("dryRun") or query.getlist("dryRun")),
    }


class _Json(JSONResponse):
    """Response encoded by msgspec: lists of nodes and pods are most of the sandbox's output."""

    def render(self, content: JsonObject) -> bytes:
        """Encode the object."""
        return msgspec.json.encode(content)


def _answer(body: JsonObject, code: int = 200, warnings: list[str] | None = None) -> Response:
    response = _Json(body, code)
    for text in warnings or ():
        response.headers.append("warning", f'299 - "{text.replace(chr(34), chr(92) + chr(34))}"')
    return response
