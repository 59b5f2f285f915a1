"""Parses requests.

In scope: paths, query options, and bodies as values. Out of scope: acting on them.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import yaml

from gpukube_sandbox.kube.http import protobuf
from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.kinds import NOT_EMULATED, NOT_EMULATED_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from starlette.requests import Request

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

_YAML_TYPES = frozenset({"application/yaml", "application/apply-patch+yaml", "text/yaml"})
_ANSWERS = frozenset(
    {"", "*/*", "application/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
)
"""Media types that a client may accept; the server sends JSON even if a client prefers protobuf."""
_NAME_AND_PART = 2


CONFIGZ = "proxy/configz"
"""The only path of a kubelet that can be read through the API server here; its subresource is `proxy`."""


@dataclass(frozen=True, slots=True)
class Target:
    """The resource that a path names.

    Attributes:
        kind: The resource type.
        namespace: Namespace; "" for all, or for cluster-scoped types.
        name: Object name; "" for the collection.
        part: Subresource; "" for the object itself.
    """

    kind: Kind
    namespace: str
    name: str
    part: str


@dataclass(frozen=True, slots=True)
class Options:
    """Query options of a write."""

    dry_run: bool
    manager: str
    validation: str
    force: bool


def parse_target(parts: list[str], kinds: Mapping[tuple[str, str], Kind]) -> Target:
    """Parse the parts of /api/v1/... and /apis/<group>/<version>/... paths.

    Raises:
        ApiProblem: 404 for an unknown resource type, 501 for one that only real clusters have.
    """
    core = parts[0] == "api"
    group, version, rest = ("", parts[1], parts[2:]) if core else (parts[1], parts[2], parts[3:])
    namespace = ""
    # /namespaces/<n>/<plural> is the content of a namespace; /namespaces/<n> and its status are the namespace itself.
    if rest[0] == "namespaces" and len(rest) > _NAME_AND_PART and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = kinds.get((group, rest[0]))
    if (group, rest[0]) in NOT_EMULATED or (kind and kind.idle and kind.version != version):
        raise problems.not_emulated(rest[0], group)
    if kind is None or kind.version != version:
        raise problems.no_such_path()
    name, part = (rest[1] if len(rest) > 1 else ""), "/".join(rest[2:])
    if (kind.plural, part) == ("nodes", CONFIGZ):
        return Target(kind, namespace, name, CONFIGZ.partition("/")[0])
    if (kind.plural, part.partition("/")[0]) in NOT_EMULATED_PARTS:
        raise problems.not_emulated(f"{kind.plural}/{part}")
    if part and part not in kind.subresources:
        raise problems.no_such_path()
    return Target(kind, namespace, name, part)


def read_options(request: Request) -> Options:
    """Parse dryRun, fieldManager, fieldValidation, and force; the manager defaults to the client's name."""
    query = request.query_params
    agent = request.headers.get("user-agent", "unknown").split("/", 1)[0]
    _check_options(request)
    return Options(
        dry_run="All" in query.getlist("dryRun"),
        manager=query.get("fieldManager") or agent,
        validation=query.get("fieldValidation", ""),
        force=query.get("force") == "true",
    )


_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_LONGEST_MANAGER = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
APPLY = "application/apply-patch+yaml"


def _check_options(request: Request) -> None:
    """Reject invalid options of a write.

    Raises:
        ApiProblem: 422.

    Source: k8s.io/apimachinery pkg/apis/meta/v1/validation (ValidateCreateOptions, ValidatePatchOptions).
    """
    query, kind = request.query_params, _OPTIONS.get(request.method, "DeleteOptions")
    check_dry_run(query.getlist("dryRun"), kind)
    if len(query.get("fieldManager", "")) > _LONGEST_MANAGER:
        text = f"fieldManager: Too long: may not be more than {_LONGEST_MANAGER} bytes"
        raise problems.invalid(kind, "", text, "meta.k8s.io")
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        known = ", ".join(f'"{one}"' for one in _VALIDATIONS)
        text = f'fieldValidation: Unsupported value: "{validation}": supported values: {known}'
        raise problems.invalid(kind, "", text, "meta.k8s.io")
    if request.method == "PATCH":
        applies = request.headers.get("content-type", "").split(";")[0] == APPLY
        if applies and not query.get("fieldManager"):
            text = "fieldManager: Required value: is required for apply patch"
            raise problems.invalid(kind, "", text, "meta.k8s.io")
        if not applies and "force" in query:
            raise problems.invalid(
                kind, "", "force: Forbidden: may not be specified for non-apply patch", "meta.k8s.io"
            )


def check_dry_run(requested: Sequence[str], kind: str) -> None:
    """Reject a dryRun value other than All.

    Raises:
        ApiProblem: 422.
    """
    if any(one != "All" for one in requested):
        text = f'dryRun: Unsupported value: {json.dumps(list(requested))}: supported values: "All"'
        raise problems.invalid(kind, "", text, "meta.k8s.io")


async def read_body(request: Request) -> Any:  # noqa: ANN401 -- any JSON value: an object, or a list for a JSON patch
    """Decode JSON, YAML, or protobuf; an empty body is an empty object.

    Raises:
        ApiProblem: 400 if it cannot be decoded, 415 for an unknown encoding.
    """
    body = await request.body()
    content_type = request.headers.get("content-type", "application/json").split(";")[0].strip()
    if not body:
        return {}
    if content_type == protobuf.CONTENT_TYPE:
        return protobuf.decode(body)
    if content_type.startswith("text/"):
        raise problems.unsupported_body(content_type)
    try:
        return json.loads(body)
    except ValueError as problem:
        if content_type not in _YAML_TYPES:
            raise problems.bad_request(f"couldn't get version/kind; json parse error: {problem}") from None
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as problem:
        raise problems.bad_request(f"error decoding YAML: {problem}") from None


def check_accept(accept: str) -> None:
    """Reject a request whose Accept header matches no available media type.

    Raises:
        ApiProblem: 406.

    Source: k8s.io/apiserver pkg/endpoints/handlers/negotiation.
    """
    for part in accept.split(","):
        form, *more = (word.strip() for word in part.split(";"))
        if form in _ANSWERS and ("v=v1" in more or not any(word.startswith("as=") for word in more)):
            return
    known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    raise problems.ApiProblem(406, "NotAcceptable", f"only the following media types are accepted: {known}")


@contextmanager
def decoding(patch: object) -> Iterator[None]:
    """Report a decoding error of a patched object as an invalid patch.

    Raises:
        ApiProblem: 422 instead of 400.

    Source: k8s.io/apiserver pkg/endpoints/handlers/patch.go.
    """
    try:
        yield
    except problems.ApiProblem as problem:
        if problem.code != HTTPStatus.BAD_REQUEST:
            raise
        text = f"patch: Invalid value: {json.dumps(json.dumps(patch))}: {problem.message}"
        raise problems.invalid("", "", text) from None


def check_identity(new: JsonObject, old: JsonObject, target: Target) -> None:
    """Reject a patch that changes the identity of an object.

    Raises:
        ApiProblem: 400 for a changed name or namespace, 422 for a changed uid.
    """
    meta, name = new.get("metadata") or {}, target.name
    if meta.get("name") != name:
        text = f"the name of the object ({meta.get('name')}) does not match the name on the URL ({name})"
        raise problems.bad_request(text)
    if meta.get("namespace") != old["metadata"].get("namespace"):
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise problems.bad_request(text)
    if meta.get("uid") not in {None, old["metadata"]["uid"]}:
        text = f'metadata.uid: Invalid value: "{meta["uid"]}": field is immutable'
        raise problems.invalid(target.kind.kind, name, text, target.kind.group)


def require_object(body: object, target: Target) -> JsonObject:
    """Return the body if its type matches the path; set its name and namespace from the path.

    Raises:
        ApiProblem: 400.
    """
    if not isinstance(body, dict):
        raise problems.bad_request("the body of the request is not an object")
    kind = body.get("kind", target.kind.kind)
    if kind != target.kind.kind and not target.part:
        raise problems.bad_request(f"the kind of the object ({kind}) does not match the resource ({target.kind.kind})")
    version = body.get("apiVersion") or target.kind.api_version
    if version != target.kind.api_version and not target.part:
        text = f"the API version in the data ({version}) does not match the expected API version"
        raise problems.bad_request(f"{text} ({target.kind.api_version})")
    meta = body.setdefault("metadata", {})
    for key, value in (("namespace", target.namespace), ("name", target.name)):
        sent = meta.get(key)
        if value and sent and sent != value:
            raise problems.bad_request(
                f"the {key} of the provided object does not match the {key} sent on the request ({sent} != {value})"
            )
        if value:
            meta[key] = value
    return body
