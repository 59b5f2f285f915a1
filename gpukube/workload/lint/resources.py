"""Rules about requests of containers: GPUs in limits, integers, correct names.

Pure. Out of scope: where pods can run (`placement`), Ray (`ray`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.spec.source.positions import PositionedDict
from gpukube.spec.wording import quoted
from gpukube.workload.lint.edits import Drop, Insert, Move, Rewrite
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import GPU, NOTHING, Loose, Pod, amount, is_gpu, mapping
from gpukube.workload.quantity import whole
from gpukube.workload.requests import is_extended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.errors import Where
    from gpukube.spec.source.positions import Data
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.lint.views import Container
    from gpukube.workload.lint.world import World
    from gpukube.workload.manifests import Manifest

CONTAINERS: Final[Rules[Pod | Loose]] = Rules()
"""Rules about containers, and about limits and requests elsewhere."""
PODS: Final[Rules[Pod]] = Rules()
OBJECTS: Final[Rules[Manifest]] = Rules()

_VALIDATION: Final = "https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/v1/validation/validation.go"
_GUIDE: Final = "https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/"
_RETIRED: Final = "alpha.kubernetes.io/nvidia-gpu"
_STANDARD: Final = re.compile(r"cpu|memory|ephemeral-storage|storage|hugepages-.+")
_MEANT: Final = re.compile(r".*(gpu|nvidia).*", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\$\{?\w+\}?|\{\{.*\}\}|<\w[\w -]*>")
_PARTS: Final = ("limits", "requests")


def shown(value: object) -> str:
    """Format a value as in JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


@CONTAINERS.rule(
    "gpu-request-only",
    why="the API server rejects it: Limit must be set for non overcommitable resources",
    fix="write it under limits; requests are optional",
    source=_VALIDATION,
)
def _request_only(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for name, value in container.requests.items():
            if is_extended(name) and name not in container.limits:
                yield Hit(
                    where=pod.key_at(*container.path, container.field, "requests", name),
                    seen=f"{container} has {name} under requests but not under limits",
                    fix=f"write {name}: {shown(value)} under limits; requests are optional",
                    edits=_add_limit(pod, container, name, value),
                )


def _add_limit(pod: Pod | Loose, container: Container, name: str, value: Data) -> tuple[Edit, ...]:
    if whole(amount(value) or NOTHING + 1) is None:
        return ()
    path = (*container.path, container.field)
    entry = f"{name}: {shown(value)}"
    if isinstance(container.resources.get("limits"), PositionedDict):
        return (Insert(pod.at(*path, "limits"), entry),) if container.limits else ()
    return () if "limits" in container.resources else (Insert(pod.at(*path), f"limits: {{{entry}}}"),)


@CONTAINERS.rule(
    "gpu-request-differs",
    why="a device cannot be overcommitted: the API server rejects a request that differs from the limit",
    fix="write the same number, or omit the request",
    source=_VALIDATION,
)
def _request_differs(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for name, value in container.requests.items():
            limit = container.limits.get(name)
            request, most = amount(value), amount(limit)
            if is_extended(name) and request is not None and most is not None and request != most:
                where = pod.at(*container.path, container.field, "requests", name)
                yield Hit(
                    where=where,
                    seen=f"{container} requests {shown(value)} {name}, but its limit is {shown(limit)}",
                    fix=f"write {shown(limit)}, or omit the request",
                    edits=(Rewrite(where, shown(limit)),),
                )


@CONTAINERS.rule(
    "gpu-fraction",
    why="devices are counted in whole units; the API server rejects the pod",
    fix="write a whole number; to share a GPU, use a pool with MIG or time-slicing",
    source=_GUIDE,
)
def _fraction(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for part, named in (("limits", container.limits), ("requests", container.requests)):
            for name, value in named.items():
                if not is_extended(name) or value is None:
                    continue
                count = amount(value)
                if isinstance(value, str) and (unfilled := _PLACEHOLDER.search(value)):
                    yield Hit(
                        where=pod.at(*container.path, container.field, part, name),
                        seen=f"{name} is {shown(value)}: {unfilled[0]} is not filled in",
                        why="the API server accepts no placeholders; the value cannot be checked further",
                        fix="substitute it first: envsubst < FILE | gpukube workload lint -",
                    )
                elif count is None or whole(count) is None or count < 0:
                    yield Hit(
                        where=pod.at(*container.path, container.field, part, name),
                        seen=f"{name} is {shown(value)}, which is not a whole number of devices",
                    )


@CONTAINERS.rule(
    "gpu-name-unqualified",
    why="only cpu, memory, ephemeral-storage and hugepages have no prefix; the API server rejects the pod",
    fix=f"write {GPU}",
    source="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources",
)
def _unqualified(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for part, named in (("limits", container.limits), ("requests", container.requests)):
            for name in named:
                bare = "/" not in name and not _STANDARD.fullmatch(name) and _MEANT.fullmatch(name)
                if bare or name.startswith(f"requests.{GPU.partition('/')[0]}/"):
                    where = pod.key_at(*container.path, container.field, part, name)
                    right = name.removeprefix("requests.") if not bare else GPU
                    yield Hit(
                        where=where,
                        seen=f"{quoted(name)} is not the name of a resource",
                        fix=f"write {right}",
                        edits=(Rewrite(where, right),) if right not in named else (),
                    )


@PODS.rule(
    "gpu-misplaced",
    why="kubectl rejects the unknown field; other clients silently drop it, and the container gets no GPU",
    fix="write it under resources.limits",
    source="https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
)
def _misplaced(pod: Pod, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        resources = (*container.path, "resources")
        outside = [part for part in _PARTS if isinstance(container.data.get(part), PositionedDict)]
        # If limits exist next to resources, entries directly under resources are meant as requests.
        under = "requests" if "limits" in outside and "limits" not in container.resources else "limits"
        for name, value in container.resources.items():
            if is_extended(name) or _STANDARD.fullmatch(name):
                key = pod.key_at(*resources, name)
                seen = f"{container} has {name} directly under resources"
                if name in container.limits:
                    yield _again(key, seen, value, container.limits[name], f"resources.limits.{name}")
                else:
                    fix = f"write it under resources.{under}"
                    yield Hit(where=key, seen=seen, fix=fix, edits=(Move(key, pod.at(*resources), under),))
        for part in outside:
            key = pod.key_at(*container.path, part)
            seen = f"{container} has {part} next to resources, not under it"
            if isinstance(inside := container.resources.get(part), PositionedDict):
                same = {name: value for name, value in inside.items() if name in mapping(container.data[part])}
                yield _again(key, seen, container.data[part], same, f"resources.{part}")
                continue
            movable = part not in container.resources and isinstance(container.data.get("resources"), PositionedDict)
            yield Hit(
                where=key,
                seen=seen,
                fix=f"write {part} under resources",
                edits=(Move(key, pod.at(*resources)),) if movable else (),
            )


def _again(key: Where, seen: str, value: object, counted: object, place: str) -> Hit:
    """Return the hit for a value that also exists in the right place; if both are equal, removing it loses nothing."""
    if value == counted:
        why = f"kubectl rejects the unknown field; {place} applies, with the same value"
        return Hit(where=key, seen=seen, why=why, fix=f"remove it: {place} has it", edits=(Drop(key),))
    why = f"kubectl rejects the unknown field; other clients silently drop it, and only {place} applies"
    return Hit(where=key, seen=seen, why=why, fix=f"write the intended value in {place}, and remove it here")


@PODS.rule(
    "gpu-pod-level",
    why="pod-level resources are cpu, memory and hugepages; the API server rejects others",
    fix="write it under resources.limits of a container",
    source="https://github.com/kubernetes/component-helpers/blob/v0.34.0/resource/helpers.go",
)
def _pod_level(pod: Pod, _: World) -> Iterator[Hit]:
    resources = mapping(pod.spec.get("resources"))
    for part in _PARTS:
        for name in mapping(resources.get(part)):
            if is_extended(name):
                yield Hit(
                    where=pod.key_at("resources", part, name),
                    seen=f"{name} is among the pod-level resources",
                )


@PODS.rule(
    "gpu-in-containers",
    severity="warning",
    why="containers of a pod do not share devices: one node must have all of them",
    fix="request the GPU in the one container that uses it",
    source="https://github.com/NVIDIA/k8s-device-plugin/issues/51",
)
def _several_containers(pod: Pod, _: World) -> Iterator[Hit]:
    asking = [container for container in pod.apps if container.gpus]
    for container in asking[1:2]:
        names = ", ".join(one.name for one in asking)
        total = ", ".join(f"{count} {name}" for name, count in pod.gpus.items())
        yield Hit(
            where=pod.at(*container.path, "resources"),
            seen=f"{len(asking)} containers request GPUs ({names}), {total} in all",
        )


@PODS.rule(
    "gpu-init-larger",
    severity="warning",
    why="the pod is scheduled by the larger of the two, and the difference is unused after the start",
    fix="request fewer in the init container",
    source="https://github.com/kubernetes/component-helpers/blob/v0.34.0/resource/helpers.go",
)
def _init_larger(pod: Pod, _: World) -> Iterator[Hit]:
    running = {name: sum(one.gpus.get(name, 0) for one in pod.apps) for name in pod.gpus}
    for container in pod.containers:
        if container.is_init and not container.is_sidecar:
            for name, count in container.gpus.items():
                if count > running.get(name, 0):
                    yield Hit(
                        where=pod.at(*container.path, "resources"),
                        seen=f"init container {container.name} requests {count} {name}, the containers after it "
                        f"{running.get(name, 0)}",
                    )


@CONTAINERS.rule(
    "gpu-zero",
    severity="warning",
    why="it hides no GPU from the container, but makes the admission plugin add the toleration for GPU nodes",
    fix="remove it; to hide GPUs, set the variable NVIDIA_VISIBLE_DEVICES to void",
    source="https://github.com/NVIDIA/k8s-device-plugin/issues/61",
)
def _zero(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for name, value in container.limits.items():
            if is_gpu(name) and amount(value) == 0:
                yield Hit(
                    where=pod.at(*container.path, container.field, "limits", name),
                    seen=f"{container} requests 0 {name}",
                )


@CONTAINERS.rule(
    "gpu-name-retired",
    why="the name predates device plugins, and nothing advertises it: no node can run the pod",
    fix=f"write {GPU}",
    source="https://github.com/kubernetes/kubernetes/issues/96506",
)
def _retired(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for part, named in (("limits", container.limits), ("requests", container.requests)):
            if _RETIRED in named:
                where = pod.key_at(*container.path, container.field, part, _RETIRED)
                yield Hit(
                    where=where,
                    seen=f"{container} requests {_RETIRED}",
                    edits=(Rewrite(where, GPU),) if GPU not in named else (),
                )


@PODS.rule(
    "gpu-without-cpu",
    severity="warning",
    why="without them the scheduler may place it on a full node, where it is evicted first",
    fix="write requests for cpu and memory",
    source="https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/",
)
def _without_cpu(pod: Pod, _: World) -> Iterator[Hit]:
    whole_pod = mapping(pod.spec.get("resources"))
    given = {name for part in _PARTS for name in mapping(whole_pod.get(part))}
    for container in pod.apps:
        lacking = [name for name in ("cpu", "memory") if not container.has(name) and name not in given]
        if container.gpus and lacking:
            yield Hit(
                where=pod.key_at(*container.path, "resources"),
                seen=f"container {container.name} requests a GPU, and no {' and no '.join(lacking)}",
                fix=f"write requests for {' and '.join(lacking)}",
            )


@OBJECTS.rule(
    "gpu-quota-name",
    why="extended resources support only the requests. form: the quota is accepted but counts nothing",
    fix=f"write requests.{GPU}",
    source="https://kubernetes.io/docs/concepts/policy/resource-quotas/#resource-quota-for-extended-resources",
)
def _quota(manifest: Manifest, _: World) -> Iterator[Hit]:
    if manifest.kind != "ResourceQuota":
        return
    hard = mapping(mapping(manifest.root.get("spec")).get("hard"))
    for name in hard:
        bare = name.removeprefix("limits.")
        if is_gpu(bare):
            where = manifest.positions.key_at(("spec", "hard", name))
            right = f"requests.{bare}"
            yield Hit(
                where=where,
                seen=f"{name} limits nothing",
                fix=f"write {right}",
                edits=(Rewrite(where, right),) if right not in hard else (),
            )
