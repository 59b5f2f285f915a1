"""The kubelet's events about its pods, as in `kubectl describe pod`.

In scope: deriving events from container states, each recorded once. Out of scope: the states (`podruns`).

Source: kubernetes pkg/kubelet/events, kuberuntime; containerd (no runtime for ... is configured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.events import Recorder
    from gpukube_sandbox.kube.nodes.podruns import ContainerRun, PodRun
    from gpukube_sandbox.kube.store.objects import JsonObject

PodEvent = tuple[str, str, bool]
"""Reason, message, and whether it is a warning."""


async def record_events(events: Recorder, run: PodRun, pod: JsonObject, creation_problem: PodEvent | None) -> None:
    """Record new events about a pod.

    Args:
        events: The kubelet's event recorder.
        run: The kubelet's state of the pod.
        pod: The pod.
        creation_problem: Why its containers cannot be created; None if they can.
    """
    new = [*([creation_problem] if creation_problem and not run.started else []), *_events(run, pod)]
    for reason, message, warning in new:
        if (reason, message) not in run.reported:
            run.reported.add((reason, message))
            await events.record("pods", pod, reason, message, warning=warning)


def _events(run: PodRun, pod: JsonObject) -> Iterator[PodEvent]:
    if run.refusal:
        yield run.refusal_reason, run.refusal, True
        return
    for item in [*run.inits, *run.mains]:
        yield from _container_events(item, run, pod)
    if meta(pod).get("deletionTimestamp"):
        for item in run.mains:
            if item.state == "running":
                yield "Killing", f"Stopping container {item.name}", False


def _container_events(item: ContainerRun, run: PodRun, pod: JsonObject) -> Iterator[PodEvent]:
    image = item.body.get("image", "")
    if item.reason == "ImagePullBackOff":
        yield "Pulling", f'Pulling image "{image}"', False
        yield "Failed", f'Failed to pull image "{image}": no such host', True
        yield "Failed", "Error: ErrImagePull", True
        yield "BackOff", f'Back-off pulling image "{image}"', False
    elif item.since:
        yield "Pulled", f'Container image "{image}" already present on machine', False
        yield "Created", f"Created container: {item.name}", False
        if item.reason == "StartError":
            yield "Failed", f"Error: {item.message}", True
        else:
            yield "Started", f"Started container {item.name}", False
    if item.reason == "CrashLoopBackOff":
        place = f"{name_of(pod)}_{namespace_of(pod)}({run.uid})"
        yield "BackOff", f"Back-off restarting failed container {item.name} in pod {place}", True


def no_runtime(pod: JsonObject) -> PodEvent:
    """Return the event for a RuntimeClass whose container runtime the node lacks."""
    missing = f'no runtime for "{spec(pod)["runtimeClassName"]}" is configured'
    failed = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime"
    return "FailedCreatePodSandBox", f"{failed}: {missing}", True


def no_volume(pod: JsonObject, config_map: str) -> PodEvent:
    """Return the event for a mounted ConfigMap that does not exist."""
    volumes = spec(pod).get("volumes") or ()
    name = next((item["name"] for item in volumes if (item.get("configMap") or {}).get("name") == config_map), "")
    return "FailedMount", f'MountVolume.SetUp failed for volume "{name}" : configmap "{config_map}" not found', True
