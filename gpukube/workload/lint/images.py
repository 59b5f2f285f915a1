"""Rules about images and environment variables: which containers see which GPUs, which images are still published.

Pure. Out of scope: what containers request (`resources`), the fields of KubeRay (`ray`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.spec.wording import quoted
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import Pod, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.workload.lint.views import Container
    from gpukube.workload.lint.world import World

PODS: Final[Rules[Pod]] = Rules()

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_PART_ANNOTATIONS: Final = frozenset({"gpu-fraction", "gpu-memory"})
_CUDA_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_RAY: Final = re.compile(r"rayproject/ray(-llm|-ml)?")
_CUDA_TAG: Final = re.compile(r".*-(gpu|cu[0-9]+.*)")
_VERSION: Final = re.compile(r"(\d+\.\d+\.\d+)(-.*)?")


class Image(NamedTuple):
    """The parts of an image's name.

    Attributes:
        repository: Repository, including the registry if named: "nvidia/cuda".
        tag: Tag; "" if missing.
        digest: Digest; "" if missing.
    """

    repository: str
    tag: str
    digest: str

    @property
    def is_ray(self) -> bool:
        """Whether it is one of Ray's own images."""
        return _RAY.fullmatch("/".join(self.repository.split("/")[-2:])) is not None

    @property
    def has_cuda(self) -> bool:
        """Whether it is known to be based on a CUDA image, which shows all GPUs by default."""
        if self.repository.endswith("nvidia/cuda") or self.repository.endswith("rayproject/ray-llm"):
            return True
        return self.is_ray and _CUDA_TAG.fullmatch(self.tag) is not None

    @property
    def version(self) -> str:
        """Ray version at the start of its tag; "" if there is none."""
        found = _VERSION.fullmatch(self.tag)
        return found[1] if found else ""


def parse_image(name: str) -> Image:
    """Parse an image name."""
    name, _, digest = name.partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the colon belongs to a registry's port
        return Image(name, "", digest)
    return Image(repository, tag, digest)


def variable(container: Container, name: str) -> tuple[int, str] | None:
    """Return index and value of a variable; the value is "" if set from elsewhere."""
    return next(((index, text(value)) for index, found, value in container.environment() if found == name), None)


@PODS.rule(
    "gpu-visible-without-request",
    severity="warning",
    why="CUDA images request all GPUs: on a GPU node the container sees those of other pods, and Ray counts them",
    fix=f"set {VISIBLE} to void in env",
    source="https://github.com/NVIDIA/k8s-device-plugin/issues/87",
)
def _sees_all(pod: Pod, _: World) -> Iterator[Hit]:
    if _has_part_by_annotation(pod):
        return
    for container in pod.apps:
        has_cuda = parse_image(container.image).has_cuda
        if container.gpus or container.mentions_gpu or not has_cuda or variable(container, VISIBLE):
            continue
        yield Hit(
            where=pod.at(*container.path, "image"),
            seen=f"container {container.name} has a CUDA image but requests no GPU",
        )


def _has_part_by_annotation(pod: Pod) -> bool:
    """Return whether another scheduler assigns a part of a GPU to the pod, and sets the variable for it.

    Source: NVIDIA/KAI-Scheduler, docs/gpu-sharing (gpu-fraction, gpu-memory; Run:ai has the same). Other schedulers are
    not known here.
    """
    annotations = mapping(pod.template.metadata.get("annotations"))
    named = text(pod.spec.get("schedulerName")) or _DEFAULT_SCHEDULER
    return named != _DEFAULT_SCHEDULER or not annotations.keys().isdisjoint(_PART_ANNOTATIONS)


@PODS.rule(
    "gpu-visible-devices",
    severity="warning",
    why="the device plugin sets the variable; a value in the pod bypasses the allocation, or is overwritten",
    fix="remove it; limits determine what the container sees",
    source="https://github.com/NVIDIA/nvidia-container-toolkit/issues/27",
)
def _visible_devices(pod: Pod, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for index, name, value in container.environment() if container.gpus else ():
            if name in (VISIBLE, _CUDA_VISIBLE):
                yield Hit(
                    where=pod.at(*container.path, "env", index, "name"),
                    seen=f"container {container.name} requests a GPU and sets {name}"
                    + (f" to {quoted(value)}" if isinstance(value, str) else ""),
                    why=""
                    if name == VISIBLE
                    else "the container's devices are numbered from 0, whatever their numbers on the node",
                )


@PODS.rule(
    "ray-image",
    severity="warning",
    why="the pod does not start, or Ray finds no CUDA",
    fix="write rayproject/ray:VERSION-gpu with the version of rayVersion",
    source="https://docs.ray.io/en/latest/ray-overview/installation.html#docker-images",
)
def _ray_image(pod: Pod, _: World) -> Iterator[Hit]:
    for container in pod.apps:
        image = parse_image(container.image)
        if not image.is_ray:
            continue
        where = pod.at(*container.path, "image")
        if image.repository.endswith("rayproject/ray-ml"):
            yield Hit(
                where=where,
                seen=f"{container.image} is in a repository without new images since Ray 2.50",
                why="ray-ml was deprecated in Ray 2.31, and many of its tags are gone",
                fix="write rayproject/ray:VERSION-gpu, and install libraries in your own image or a runtime env",
            )
        elif image.tag in ("", "latest") and not image.digest:
            yield Hit(
                where=where,
                seen=f"{container.image} has no version",
                why="head and workers that start at different times run different versions of Ray",
            )
        elif container.gpus and image.tag and not image.has_cuda:
            yield Hit(where=where, seen=f"{container.image} has no CUDA, and the container requests a GPU")


@PODS.rule(
    "cuda-image-latest",
    severity="warning",
    why="nvidia/cuda has no tag latest: the image cannot be pulled",
    fix="write a version, such as nvidia/cuda:12.6.3-base-ubuntu24.04",
    source="https://hub.docker.com/r/nvidia/cuda",
)
def _cuda_latest(pod: Pod, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        image = parse_image(container.image)
        if image.repository.endswith("nvidia/cuda") and image.tag in ("", "latest") and not image.digest:
            yield Hit(
                where=pod.at(*container.path, "image"),
                seen=f"container {container.name} has the image {container.image}",
            )
