"""Nodes, pods and plugins over time, on a clock turned by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.cluster import GpuShape, KubeCluster, NodeShape, Taint
from gpukube_sandbox.kube.store.kinds import CORE, NODE_FEATURE
from gpukube_sandbox.kube.store.objects import conditions, labels, spec, status
from gpukube_sandbox.kube.store.patches import merge_patch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.kube.store.objects import JsonObject

CONFIG_LABEL = "nvidia.com/device-plugin.config"
GPU_TAINT = Taint("nvidia.com/gpu", "present")
SLICED = GpuShape("A100-40GB", 8, ("1g.5gb",) * 7, mig_reboot=True)
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
CONFIGS = {
    "default": "version: v1",
    "single": "flags: {migStrategy: single}",
    "mixed": "flags: {migStrategy: mixed}",
    "sliced": """
sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
""",
    "mps": "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
    "broken": "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}",
}


class Bench:
    """A cluster on a manual clock, with short ways to put things in and look at them."""

    def __init__(self, version: str = "1.34.2") -> None:
        self.clock = ManualClock()
        self.cluster = KubeCluster("train", self.clock, "token", version)

    def put(self, plural: str, obj: JsonObject) -> JsonObject:
        obj["metadata"].setdefault("namespace", "default")
        return self.cluster.store.create(CORE[plural], obj)

    def get(self, plural: str, name: str) -> JsonObject:
        return self.cluster.store.get(CORE[plural], "default", name)

    def change(self, plural: str, name: str, patch: JsonObject) -> None:
        self.cluster.store.update(CORE[plural], merge_patch(self.get(plural, name), patch))

    def all_of(self, plural: str) -> list[JsonObject]:
        return self.cluster.store.all_of(CORE[plural])

    def gpus(self, node: str = "n1") -> dict[str, str]:
        found: dict[str, str] = status(self.get("nodes", node))["allocatable"]
        return {key: value for key, value in found.items() if key.startswith("nvidia.com/")}

    def pod_of(self, owner: str, node: str = "n1") -> JsonObject:
        found = [pod for pod in self.all_of("pods") if pod["metadata"]["name"].startswith(f"{owner}-")]
        return next(pod for pod in found if spec(pod).get("nodeName") == node)

    async def node(self, shape: GpuShape | None, *taints: Taint, name: str = "n1", **marks: str) -> None:
        pairs = {key.replace("__", "."): value for key, value in marks.items()}
        await self.cluster.add_node(NodeShape(name, gpu=shape, taints=taints, labels=pairs, boot_s=30))

    async def wait(self, seconds: float) -> None:
        await self.clock.advance(seconds)


def life(story: Callable[[Bench], Awaitable[None]], version: str = "1.34.2") -> None:
    async def main() -> None:
        bench = Bench(version)
        await bench.cluster.start()
        try:
            await story(bench)
        finally:
            await bench.cluster.stop()
        assert bench.cluster.failures == []

    asyncio.run(main())


def plugin(
    name: str = "plugin", *, configs: bool = True, env: dict[str, str] | None = None, **more: object
) -> JsonObject:
    """Make a DaemonSet as the chart renders it, cut down to what the imitated programs read."""
    variables = {"CONFIG_FILE": "/config/config.yaml"} if configs else {}
    mounts = [
        {"name": "available-configs", "mountPath": "/available-configs"},
        {"name": "config", "mountPath": "/config"},
    ]
    main = {
        "name": "main",
        "image": "plugin:1",
        "command": ["nvidia-device-plugin"],
        "env": [{"name": key, "value": value} for key, value in {**variables, **(env or {})}.items()],
        "volumeMounts": mounts if configs else [],
    }
    volumes = [{"name": "available-configs", "configMap": {"name": "configs"}}, {"name": "config", "emptyDir": {}}]
    pod: JsonObject = {"containers": [main], "tolerations": TOLERATED, "volumes": volumes if configs else [], **more}
    if configs:
        pod["initContainers"] = [manager("init", once="true", mounts=mounts)]
        pod["containers"].insert(0, manager("sidecar", once="false", mounts=mounts))
    return daemonset(name, pod)


def manager(name: str, *, once: str, mounts: list[dict[str, str]]) -> JsonObject:
    env = {
        "ONESHOT": once,
        "NODE_LABEL": CONFIG_LABEL,
        "DEFAULT_CONFIG": "default",
        "CONFIG_FILE_SRCDIR": "/available-configs",
    }
    listed = [{"name": key, "value": value} for key, value in env.items()]
    return {"name": name, "image": "plugin:1", "command": ["config-manager"], "env": listed, "volumeMounts": mounts}


def daemonset(name: str, pod: JsonObject) -> JsonObject:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}


def configs(bench: Bench) -> None:
    bench.put("configmaps", {"metadata": {"name": "configs"}, "data": CONFIGS})


def workload(name: str, resources: dict[str, int], *, tolerations: list[dict[str, str]] | None = None) -> JsonObject:
    limits = {key: str(value) for key, value in resources.items()}
    container = {"name": "main", "image": "work", "command": ["sleep"], "resources": {"limits": limits}}
    tolerated = TOLERATED if tolerations is None else tolerations
    return {"metadata": {"name": name}, "spec": {"containers": [container], "tolerations": tolerated}}


# nodes


def test_node_when_mig_machine_boots_then_gpus_come_after_the_reboot_only() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False, env={"MIG_STRATEGY": "single"}))
        await bench.node(SLICED, GPU_TAINT)
        await bench.wait(29)
        assert bench.all_of("nodes") == []
        await bench.wait(2)
        assert conditions(bench.get("nodes", "n1"))["Ready"] == "False"
        await bench.wait(10)
        assert conditions(bench.get("nodes", "n1"))["Ready"] == "Unknown"
        assert bench.gpus() == {}
        await bench.wait(90)
        assert conditions(bench.get("nodes", "n1"))["Ready"] == "True"
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "56"}
        assert spec(bench.get("nodes", "n1"))["taints"] == [
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        ]

    life(story)


def test_node_when_its_machine_got_no_turn_yet_then_it_registers_no_later_for_that() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.clock._now += 30  # the machine that runs the sandbox stood still
        await bench.wait(0)
        assert [node["metadata"]["name"] for node in bench.all_of("nodes")] == ["n1"]

    life(story)


def test_node_when_removed_then_its_pods_go_and_the_daemonset_counts_less() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False))
        for name in ("n1", "n2"):
            await bench.node(GpuShape("T4", 1), name=name)
        await bench.wait(60)
        assert status(bench.get("daemonsets", "plugin"))["numberReady"] == 2
        await bench.cluster.remove_node("n1")
        await bench.wait(5)
        assert [node["metadata"]["name"] for node in bench.all_of("nodes")] == ["n2"]
        assert status(bench.get("daemonsets", "plugin"))["desiredNumberScheduled"] == 1
        assert len(bench.all_of("pods")) == 1

    life(story)


def test_node_when_a_service_of_the_host_advertises_then_no_pod_is_needed() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(GpuShape("A100-40GB", 8, ("1g.5gb",) * 7, host_plugin=True, host_strategy="mixed"))
        await bench.wait(60)
        assert bench.gpus() == {"nvidia.com/mig-1g.5gb": "56"}

    life(story)


# the plugin's config


@pytest.mark.parametrize(
    ("shape", "key", "expected"),
    [
        pytest.param(SLICED, "single", {"nvidia.com/gpu": "56"}, id="single"),
        pytest.param(SLICED, "mixed", {"nvidia.com/mig-1g.5gb": "56"}, id="mixed"),
        pytest.param(SLICED, "default", {"nvidia.com/gpu": "8"}, id="none"),
        pytest.param(GpuShape("T4", 1), "sliced", {"nvidia.com/gpu": "4"}, id="t4-sliced"),
        pytest.param(GpuShape("T4", 1), "mps", {}, id="mps-without-daemon"),
    ],
)
def test_plugin_when_label_names_a_config_then_that_one_is_advertised(
    shape: GpuShape, key: str, expected: dict[str, str]
) -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(shape, GPU_TAINT, **{CONFIG_LABEL: key})
        await bench.wait(200)
        assert bench.gpus() == expected
        assert conditions(bench.pod_of("plugin"))["Ready"] == "True"

    life(story)


def test_plugin_when_label_is_unknown_then_init_container_crash_loops() -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(GpuShape("T4", 1), **{CONFIG_LABEL: "typo"})
        await bench.wait(120)
        pod = bench.pod_of("plugin")
        init = status(pod)["initContainerStatuses"][0]
        assert (status(pod)["phase"], init["state"]["waiting"]["reason"]) == ("Pending", "CrashLoopBackOff")
        assert init["restartCount"] > 1
        assert bench.gpus() == {}
        assert any(
            "specified config typo does not exist" in line
            for line in bench.cluster.log_lines(pod["metadata"]["uid"], "init")
        )

        bench.change("nodes", "n1", {"metadata": {"labels": {CONFIG_LABEL: "sliced"}}})
        await bench.wait(320)
        assert bench.gpus() == {"nvidia.com/gpu": "4"}

    life(story)


def test_plugin_when_label_changes_while_running_then_reloads_and_old_name_stays_at_zero() -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(SLICED, **{CONFIG_LABEL: "single"})
        await bench.wait(200)
        bench.change("nodes", "n1", {"metadata": {"labels": {CONFIG_LABEL: "mixed"}}})
        await bench.wait(5)
        assert bench.gpus() == {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "56"}

    life(story)


@pytest.mark.parametrize("turn", [1, -1])
def test_plugin_when_label_changes_and_nothing_else_happens_then_reloads_in_any_order_of_containers(turn: int) -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        made = plugin()
        containers = made["spec"]["template"]["spec"]["containers"]
        containers[:] = containers[::turn]
        bench.put("daemonsets", made)
        await bench.node(SLICED, **{CONFIG_LABEL: "single"})
        await bench.wait(200)
        bench.change("nodes", "n1", {"metadata": {"labels": {CONFIG_LABEL: "mixed"}}})
        await bench.cluster._kubelets.reconcile()  # one turn: no other need come
        assert bench.gpus() == {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "56"}

    life(story)


def test_plugin_when_label_becomes_unknown_while_running_then_old_config_stays_and_sidecar_crash_loops() -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(SLICED, **{CONFIG_LABEL: "single"})
        await bench.wait(200)
        bench.change("nodes", "n1", {"metadata": {"labels": {CONFIG_LABEL: "typo"}}})
        await bench.wait(40)
        states = {item["name"]: item for item in status(bench.pod_of("plugin"))["containerStatuses"]}
        assert bench.gpus() == {"nvidia.com/gpu": "56"}
        assert states["sidecar"]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert "running" in states["main"]["state"]

    life(story)


@pytest.mark.parametrize(
    ("shape", "key", "why"),
    [
        pytest.param(
            GpuShape("A100-40GB", 2, (("1g.5gb",), ("2g.10gb",))), "single", "more than one MIG device type", id="mix"
        ),
        pytest.param(GpuShape("T4", 1), "broken", "replicas must be >= 2", id="one-replica"),
        pytest.param(GpuShape("T4", 1, driver=False), "default", "could not load NVML library", id="no-driver"),
        pytest.param(SLICED, "mps", "not supported for MIG devices", id="mps-on-mig"),
    ],
)
def test_plugin_when_config_does_not_fit_the_node_then_crash_loops_without_gpus(
    shape: GpuShape, key: str, why: str
) -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(shape, **{CONFIG_LABEL: key})
        await bench.wait(200)
        pod = bench.pod_of("plugin")
        main = next(item for item in status(pod)["containerStatuses"] if item["name"] == "main")
        assert main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert not any(int(count) for count in bench.gpus().values())
        assert any(why in line for line in bench.cluster.log_lines(pod["metadata"]["uid"], "main"))
        assert status(bench.get("daemonsets", "plugin"))["numberReady"] == 0

    life(story)


def test_plugin_when_config_map_is_missing_then_pod_waits_for_it() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin())
        await bench.node(GpuShape("T4", 1))
        await bench.wait(60)
        waiting = status(bench.pod_of("plugin"))["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] in {"ContainerCreating", "PodInitializing"}
        configs(bench)
        await bench.wait(5)
        assert bench.gpus() == {"nvidia.com/gpu": "1"}

    life(story)


def test_plugin_when_mps_daemon_is_there_then_shares_after_its_retry() -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(GpuShape("T4", 1), **{CONFIG_LABEL: "mps"})
        await bench.wait(60)
        assert bench.gpus() == {}
        bench.put(
            "daemonsets",
            daemonset("mps", {"containers": [{"name": "main", "image": "p", "command": ["mps-control-daemon"]}]}),
        )
        await bench.wait(40)
        assert bench.gpus() == {"nvidia.com/gpu": "4"}

    life(story)


def test_plugin_when_its_pod_goes_then_allocatable_is_zero_and_capacity_stays() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False))
        await bench.node(GpuShape("T4", 1))
        await bench.wait(60)
        bench.cluster.store.delete(CORE["daemonsets"], "default", "plugin")
        await bench.wait(5)
        assert bench.gpus() == {"nvidia.com/gpu": "0"}
        assert status(bench.get("nodes", "n1"))["capacity"]["nvidia.com/gpu"] == "1"

    life(story)


def test_plugin_when_two_share_a_node_then_deleting_one_leaves_zero_until_the_other_restarts() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin("first", configs=False))
        await bench.node(SLICED)
        await bench.wait(200)
        bench.put("daemonsets", plugin("second", configs=False, env={"MIG_STRATEGY": "single"}))
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "56"}
        bench.cluster.store.delete(CORE["daemonsets"], "default", "second")
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "0"}
        pod = bench.pod_of("first")
        bench.cluster.store.delete(CORE["pods"], "default", pod["metadata"]["name"])
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "8"}

    life(story)


# placement


@pytest.mark.parametrize(
    ("taints", "marks", "more", "pods"),
    [
        pytest.param((GPU_TAINT,), {}, {}, 1, id="tolerated"),
        pytest.param((Taint("sku", "gpu"),), {}, {}, 0, id="untolerated"),
        pytest.param((Taint("sku", "gpu", "PreferNoSchedule"),), {}, {}, 1, id="preference-only"),
        pytest.param((), {}, {"nodeSelector": {"a": "b"}}, 0, id="selector-misses"),
        pytest.param((), {"a": "b"}, {"nodeSelector": {"a": "b"}}, 1, id="selector-hits"),
    ],
)
def test_daemonset_when_node_has_taints_and_labels_then_pods(
    taints: tuple[Taint, ...], marks: dict[str, str], more: JsonObject, pods: int
) -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False, **more))
        await bench.node(GpuShape("T4", 1), *taints, **marks)
        await bench.wait(60)
        found = status(bench.get("daemonsets", "plugin"))
        assert (found["desiredNumberScheduled"], found["numberReady"]) == (pods, pods)

    life(story)


def test_daemonset_when_affinity_label_comes_and_goes_then_pod_follows() -> None:
    async def story(bench: Bench) -> None:
        term = {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        bench.put("daemonsets", plugin(configs=False, affinity={"nodeAffinity": required}))
        await bench.node(GpuShape("T4", 1))
        await bench.wait(60)
        assert bench.all_of("pods") == []
        bench.change("nodes", "n1", {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}})
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "1"}
        bench.change("nodes", "n1", {"metadata": {"labels": {"nvidia.com/gpu.present": None}}})
        await bench.wait(10)
        assert bench.gpus() == {"nvidia.com/gpu": "0"}

    life(story)


def test_daemonset_when_template_changes_then_pods_are_replaced_one_by_one() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False))
        for name in ("n1", "n2", "n3"):
            await bench.node(GpuShape("T4", 1), name=name)
        await bench.wait(60)
        changed = bench.get("daemonsets", "plugin")
        template = {"spec": {"template": {"metadata": {"annotations": {"checksum/config": "new"}}}}}
        bench.cluster.store.update(CORE["daemonsets"], merge_patch(changed, template))
        seen = []
        for _ in range(20):
            await bench.wait(1)
            seen.append(status(bench.get("daemonsets", "plugin"))["numberReady"])
        assert min(seen) == 2
        assert seen[-1] == 3
        assert status(bench.get("daemonsets", "plugin"))["updatedNumberScheduled"] == 3

    life(story)


@pytest.mark.parametrize(
    ("resources", "tolerations", "message"),
    [
        pytest.param({"nvidia.com/gpu": 8}, None, "", id="fits"),
        pytest.param(
            {"nvidia.com/gpu": 16}, None, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", id="too-many"
        ),
        pytest.param({"nvidia.com/mig-2g.10gb": 1}, None, "1 Insufficient nvidia.com/mig-2g.10gb", id="no-such"),
        pytest.param({}, [], "1 node(s) had untolerated taint {nvidia.com/gpu: present}", id="taint"),
    ],
)
def test_scheduler_when_pod_asks_for_gpus_then_runs_or_says_why_not(
    resources: dict[str, int], tolerations: list[dict[str, str]] | None, message: str
) -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", plugin(configs=False))
        await bench.node(GpuShape("A100-40GB", 8), GPU_TAINT)
        await bench.wait(60)
        bench.put("pods", workload("work", resources, tolerations=tolerations))
        await bench.wait(10)
        found = status(bench.get("pods", "work"))
        scheduled: JsonObject = next((item for item in found["conditions"] if item["type"] == "PodScheduled"), {})
        assert found["phase"] == ("Pending" if message else "Running")
        assert message in scheduled.get("message", "")

    life(story)


def test_kubelet_when_pod_asks_for_two_of_a_limited_resource_then_refused_at_admission() -> None:
    async def story(bench: Bench) -> None:
        configs(bench)
        bench.put("daemonsets", plugin())
        await bench.node(GpuShape("T4", 1), **{CONFIG_LABEL: "sliced"})
        await bench.wait(60)
        bench.put("pods", workload("work", {"nvidia.com/gpu": 2}))
        await bench.wait(10)
        found = status(bench.get("pods", "work"))
        assert (found["phase"], found["reason"]) == ("Failed", "UnexpectedAdmissionError")
        assert "maximum request size for shared resources is 1" in found["message"]

    life(story)


def test_probe_when_it_runs_nvidia_smi_then_log_lists_the_devices() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(SLICED)
        await bench.wait(200)
        container = {"name": "main", "image": "cuda", "command": ["nvidia-smi", "-L"]}
        bench.put(
            "pods", {"metadata": {"name": "probe"}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        )
        await bench.wait(20)
        pod = bench.get("pods", "probe")
        lines = bench.cluster.log_lines(pod["metadata"]["uid"], "main")
        assert status(pod)["phase"] == "Succeeded"
        assert sum(line.startswith("GPU ") for line in lines) == 8
        assert sum("MIG 1g.5gb" in line for line in lines) == 56

    life(story)


def test_deployment_when_no_node_fits_then_pending_and_when_one_comes_then_available() -> None:
    async def story(bench: Bench) -> None:
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        bench.put(
            "deployments",
            {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template}},
        )
        await bench.node(None, GPU_TAINT, name="gpu")
        await bench.wait(60)
        assert status(bench.get("deployments", "d"))["unavailableReplicas"] == 1
        await bench.node(None, name="system")
        await bench.wait(60)
        assert conditions(bench.get("deployments", "d"))["Available"] == "True"

    life(story)


def test_job_when_its_pod_ends_well_then_complete() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        bench.put("jobs", {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}})
        await bench.wait(60)
        assert conditions(bench.get("jobs", "j"))["Complete"] == "True"

    life(story)


def test_controller_when_an_object_breaks_it_then_the_others_go_on_and_it_tries_again() -> None:
    async def story() -> None:
        bench = Bench()
        await bench.cluster.start()
        bench.put(
            "daemonsets", daemonset("bad", {"containers": [{"name": "c", "image": "i"}], "tolerations": TOLERATED})
        )
        await bench.node(None)
        await bench.wait(60)
        old = bench.get("daemonsets", "bad")
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "many"}}
        template = merge_patch(old["spec"]["template"], {"metadata": {"annotations": {"a": "b"}}})
        bad = merge_patch(old, {"spec": {"updateStrategy": strategy, "template": template}})
        bench.cluster.store._commit(CORE["daemonsets"], "MODIFIED", bad, old)  # past the rules, which refuse it
        await bench.wait(10)
        assert bench.cluster.failures
        bench.put("pods", workload("work", {}))
        await bench.wait(10)
        assert status(bench.get("pods", "work"))["phase"] == "Running"
        await bench.cluster.stop()

    asyncio.run(story())


# discovery


def test_discovery_when_worker_lacks_the_toleration_then_no_label_and_with_it_label() -> None:
    async def story(bench: Bench) -> None:
        names = {"kind": NODE_FEATURE.kind, "plural": NODE_FEATURE.plural}
        versions = [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ]
        group = {"group": NODE_FEATURE.group, "scope": "Namespaced", "names": names, "versions": versions}
        bench.put("customresourcedefinitions", {"metadata": {"name": "nodefeatures.nfd.k8s-sigs.io"}, "spec": group})
        data = {"nfd-worker.conf": "sources: {pci: {deviceClassWhitelist: ['03'], deviceLabelFields: [vendor]}}"}
        bench.put("configmaps", {"metadata": {"name": "worker"}, "data": data})
        await bench.node(None, name="system")
        await bench.node(GpuShape("T4", 1), GPU_TAINT)
        master = {"containers": [{"name": "m", "image": "nfd", "command": ["nfd-master"]}]}
        bench.put("daemonsets", daemonset("master", master))
        mount = [{"name": "conf", "mountPath": "/etc/kubernetes/node-feature-discovery"}]
        container = {"name": "w", "image": "nfd", "command": ["nfd-worker"], "volumeMounts": mount}
        worker: JsonObject = {"containers": [container], "volumes": [{"name": "conf", "configMap": {"name": "worker"}}]}
        bench.put("daemonsets", daemonset("worker", worker))
        await bench.wait(60)
        label = "feature.node.kubernetes.io/pci-10de.present"
        assert label not in labels(bench.get("nodes", "n1"))
        bench.change("daemonsets", "worker", {"spec": {"template": {"spec": {"tolerations": TOLERATED}}}})
        await bench.wait(30)
        assert labels(bench.get("nodes", "n1"))[label] == "true"
        assert label not in labels(bench.get("nodes", "system"))

    life(story)
