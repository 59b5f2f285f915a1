"""The objects that the operator creates for a RayCluster: pods, Services, and the RBAC of Ray's autoscaler.

In scope: manifests as plain data. Out of scope: when they are created (`controller`).

Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/common (pod.go, service.go, rbac.go) and
utils/resources.go.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.objects import copied, labels, meta, name_of, namespace_of, spec
from gpukube_sandbox.kube.store.quantities import parse_quantity

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

CLUSTER, GROUP, NODE_TYPE = "ray.io/cluster", "ray.io/group", "ray.io/node-type"
ORIGIN_KIND, ORIGIN_NAME = "ray.io/originated-from-crd", "ray.io/originated-from-cr-name"
SERVES = "ray.io/serve"
_COMMON = {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
_PORTS = {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "serve": 8000}
_METRICS = 8080
_GPU = re.compile(r"gpu$|nvidia\.com/mig-\d+g\.\d+gb$")
_SHELL = ["/bin/bash", "-c", "--"]
_LONGEST_PREFIX = 50
_SMALL = {"cpu": "200m", "memory": "256Mi"}
_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}


def owner_of(owner: JsonObject) -> JsonObject:
    """Return the controller reference to a Ray object."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": meta(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def groups_of(cluster: JsonObject) -> list[JsonObject]:
    """Return the worker groups of a cluster."""
    return spec(cluster).get("workerGroupSpecs") or []


def scales_itself(cluster: JsonObject) -> bool:
    """Return whether Ray's autoscaler sets the number of workers."""
    return bool(spec(cluster).get("enableInTreeAutoscaling"))


def desired_pods(group: JsonObject) -> int:
    """Return the desired pods of a worker group: replicas within bounds, times hosts per replica."""
    if group.get("suspend"):
        return 0
    replicas = max(group.get("replicas") or 0, group.get("minReplicas") or 0)
    maximum = group.get("maxReplicas")
    return (replicas if maximum is None else min(replicas, int(maximum))) * int(group.get("numOfHosts") or 1)


def accelerators(limits: JsonObject) -> int:
    """Return the GPUs that Ray detects in a container: of the first nonzero GPU resource, sorted by name."""
    counts = (parse_quantity(limits[name]) for name in sorted(limits) if _GPU.search(name))
    return next((int(count) for count in counts if count), 0)


def head_pod(cluster: JsonObject) -> JsonObject:
    """Return the head pod."""
    group = spec(cluster)["headGroupSpec"]
    pod = _pod(cluster, group, "headgroup", "head")
    pod["metadata"]["name"] = _pod_name(name_of(cluster), "head")
    if scales_itself(cluster):
        _add_autoscaler(cluster, pod)
    return pod


def worker_pod(cluster: JsonObject, group: JsonObject, index: int) -> JsonObject:
    """Return a worker pod; `index` is its replica's index in the group."""
    pod = _pod(cluster, group, group["groupName"], "worker")
    pod["metadata"]["generateName"] = _pod_name(f"{name_of(cluster)}-{group['groupName']}", "worker") + "-"
    pod["metadata"]["labels"]["ray.io/worker-group-replica-index"] = str(index)
    ray = pod["spec"]["containers"][0]
    waits = {
        "name": "wait-gcs-ready",
        "image": ray["image"],
        "command": _SHELL,
        "args": [f"until ray health-check --address {_address(cluster)}; do sleep 5; done"],
        "env": [{"name": "FQ_RAY_IP", "value": _host(cluster)}],
        "resources": {"limits": _SMALL, "requests": _SMALL},
    }
    pod["spec"]["initContainers"] = [*(pod["spec"].get("initContainers") or ()), waits]
    if scales_itself(cluster) and _version(cluster) == "v2":
        pod["spec"]["restartPolicy"] = "Never"
    return pod


def _pod_name(prefix: str, kind: str) -> str:
    return f"{prefix[:_LONGEST_PREFIX]}-{kind}".lower()


def _pod(cluster: JsonObject, group: JsonObject, group_name: str, kind: str) -> JsonObject:
    template: JsonObject = copied(group["template"])
    details = template.get("metadata") or {}
    own = {
        **_COMMON,
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{name_of(cluster)}-{kind}",
        **(details.get("labels") or {}),
        **(group.get("labels") or {}),
        CLUSTER: name_of(cluster),
        NODE_TYPE: kind,
        GROUP: group_name,
    }
    if labels(cluster).get(ORIGIN_KIND) == "RayService":  # the RayService sets whether the head serves
        own[SERVES] = "false" if kind == "head" else "true"
    ray = template["spec"]["containers"][0]
    _start_ray(cluster, group, ray, kind)
    if "plasma-directory" not in (group.get("rayStartParams") or {}):
        _share_memory(template["spec"], ray)
    if not any(port.get("name") == "metrics" for port in ray.get("ports") or ()):
        ray["ports"] = [*(ray.get("ports") or ()), {"name": "metrics", "containerPort": _METRICS}]
    return {
        "metadata": {
            "namespace": namespace_of(cluster),
            "labels": own,
            "annotations": details.get("annotations") or {},
            "ownerReferences": [owner_of(cluster)],
        },
        "spec": template["spec"],
    }


def _start_ray(cluster: JsonObject, group: JsonObject, ray: JsonObject, kind: str) -> None:
    """Set the container's command and environment, in place."""
    command = f"ray start {'--head ' if kind == 'head' else ''}{_flags(cluster, group, ray, kind)}"
    own = " ".join([*(ray.get("command") or ()), *(ray.get("args") or ())])
    overwritten = (group["template"].get("metadata") or {}).get("annotations") or {}
    if overwritten.get("ray.io/overwrite-container-cmd") != "true" and "ray start" not in own:
        ray["command"], limit = _SHELL, "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}"
        ray["args"] = [" && ".join(filter(None, (own, f"{limit}; {command}")))]
    address = "127.0.0.1:6379" if kind == "head" else _address(cluster)
    variables: list[JsonObject] = [
        {"name": "FQ_RAY_IP", "value": _host(cluster)},
        {"name": "RAY_IP", "value": _host(cluster).partition(".")[0]},
    ][: 0 if kind == "head" else 2]
    variables += [
        {"name": "RAY_CLUSTER_NAME", "valueFrom": _field(f"metadata.labels['{CLUSTER}']")},
        {"name": "RAY_CLOUD_INSTANCE_ID", "valueFrom": _field("metadata.name")},
        {"name": "RAY_NODE_TYPE_NAME", "valueFrom": _field(f"metadata.labels['{GROUP}']")},
        {"name": "KUBERAY_GEN_RAY_START_CMD", "value": command},
        {"name": "RAY_PORT", "value": "6379"},
        {"name": "RAY_ADDRESS", "value": address},
        {"name": "RAY_USAGE_STATS_KUBERAY_IN_USE", "value": "1"},
    ]
    known = {item["name"] for item in ray.get("env") or ()}
    ray["env"] = [*(ray.get("env") or ()), *(item for item in variables if item["name"] not in known)]


def _flags(cluster: JsonObject, group: JsonObject, ray: JsonObject, kind: str) -> str:
    resources = ray.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    given: dict[str, str] = {"metrics-export-port": str(_METRICS), "dashboard-agent-listen-port": "52365"}
    given |= {"dashboard-host": "0.0.0.0"} if kind == "head" else {"address": _address(cluster)}  # noqa: S104 - as in KubeRay
    if kind == "head" and scales_itself(cluster):
        given["no-monitor"] = "true"
    if cpu := limits.get("cpu") or requests.get("cpu"):
        given["num-cpus"] = str(_up(cpu))
    if memory := limits.get("memory"):
        given["memory"] = str(_up(memory))
    if gpus := accelerators(limits):
        given["num-gpus"] = str(gpus)
    named = {key.lower(): value for key, value in (group.get("resources") or {}).items()}
    given |= {f"num-{key}s": named[key] for key in ("cpu", "gpu") if key in named}
    given |= {**(group.get("rayStartParams") or {}), "block": "true"}
    return " ".join(
        f"--{name}" if value.lower() == "true" else f"--{name}={value}"
        for name, value in sorted(given.items())
        if value.lower() != "false"
    )


def _up(amount: Any) -> int:  # noqa: ANN401 - a quantity
    return int(-(-parse_quantity(amount) // 1))


def _share_memory(pod: JsonObject, ray: JsonObject) -> None:
    """Mount shared memory for the object store, as large as the container's memory."""
    if any(mount.get("mountPath") == "/dev/shm" for mount in ray.get("volumeMounts") or ()):  # noqa: S108 - as in KubeRay
        return
    memory = ((ray.get("resources") or {}).get("limits") or {}).get("memory")
    volume = {"medium": "Memory"} | ({"sizeLimit": memory} if memory else {})
    pod["volumes"] = [*(pod.get("volumes") or ()), {"name": "shared-mem", "emptyDir": volume}]
    mount = {"name": "shared-mem", "mountPath": "/dev/shm"}  # noqa: S108 - as in KubeRay
    ray["volumeMounts"] = [*(ray.get("volumeMounts") or ()), mount]


def _version(cluster: JsonObject) -> str:
    return str((spec(cluster).get("autoscalerOptions") or {}).get("version") or "")


def _add_autoscaler(cluster: JsonObject, pod: JsonObject) -> None:
    options = spec(cluster).get("autoscalerOptions") or {}
    body = pod["spec"]
    sidecar = {
        "name": "autoscaler",
        "image": options.get("image") or body["containers"][0]["image"],
        "imagePullPolicy": options.get("imagePullPolicy") or "IfNotPresent",
        "command": options.get("command") or _SHELL,
        "args": options.get("args")
        or ["ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"],
        "env": [
            {"name": "RAY_CLUSTER_NAME", "valueFrom": _field(f"metadata.labels['{CLUSTER}']")},
            {"name": "RAY_CLUSTER_NAMESPACE", "valueFrom": _field("metadata.namespace")},
            {"name": "RAY_HEAD_POD_NAME", "valueFrom": _field("metadata.name")},
            {"name": "KUBERAY_CRD_VER", "value": "v1"},
            *(options.get("env") or ()),
        ],
        "resources": options.get("resources") or {"limits": _AUTOSCALER, "requests": _AUTOSCALER},
    }
    body["containers"] = [*body["containers"], sidecar]
    body["serviceAccountName"] = autoscaler_account(cluster)
    if _version(cluster) == "v2":
        body["restartPolicy"] = "Never"


def _field(path: str) -> JsonObject:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def autoscaler_account(cluster: JsonObject) -> str:
    """Return the service account of the autoscaler in the head."""
    named = spec(cluster)["headGroupSpec"]["template"]["spec"].get("serviceAccountName")
    return str(named or name_of(cluster))


def autoscaler_rights(cluster: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return service account, role, and binding of Ray's autoscaler, as plural and object."""
    place: JsonObject = {"namespace": namespace_of(cluster), "labels": {CLUSTER: name_of(cluster), **_COMMON}}
    place["ownerReferences"] = [owner_of(cluster)]
    account = autoscaler_account(cluster)
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
        {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
    ]
    named = {"name": name_of(cluster), **place}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name_of(cluster)}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace_of(cluster)}
    return [
        ("serviceaccounts", {"metadata": {"name": account, **place}}),
        ("roles", {"metadata": named, "rules": rules}),
        ("rolebindings", {"metadata": named, "roleRef": role, "subjects": [subject]}),
    ]


def head_service_name(owner: JsonObject) -> str:
    """Return the name of the head Service of a RayCluster or RayService."""
    return f"{name_of(owner)}-head-svc"


def _host(cluster: JsonObject) -> str:
    return f"{head_service_name(cluster)}.{namespace_of(cluster)}.svc.cluster.local"


def _address(cluster: JsonObject) -> str:
    return f"{_host(cluster)}:6379"


def _ports(cluster: JsonObject) -> dict[str, int]:
    given = {
        port["name"]: port["containerPort"]
        for port in spec(cluster)["headGroupSpec"]["template"]["spec"]["containers"][0].get("ports") or ()
        if port.get("name")
    }
    return {"metrics": _METRICS, **(given or _PORTS)}


def head_service(cluster: JsonObject, owner: JsonObject) -> JsonObject:
    """Return the head Service of a cluster, owned by the cluster or by its RayService."""
    own = {**_COMMON, CLUSTER: name_of(cluster), NODE_TYPE: "head", "ray.io/identifier": f"{name_of(cluster)}-head"}
    kind = spec(cluster)["headGroupSpec"].get("serviceType")
    ports = [{"name": name, "port": port, "appProtocol": "tcp"} for name, port in sorted(_ports(cluster).items())]
    body: JsonObject = {"selector": own, "ports": ports}
    body |= {"type": kind} if kind and kind != "ClusterIP" else {"clusterIP": "None", "publishNotReadyAddresses": True}
    details = {"name": head_service_name(owner), "namespace": namespace_of(cluster), "labels": own}
    details["annotations"] = spec(cluster).get("headServiceAnnotations") or {}
    return {"metadata": {**details, "ownerReferences": [owner_of(owner)]}, "spec": body}


def serve_service(cluster: JsonObject, owner: JsonObject) -> JsonObject | None:
    """Return the Service of Ray Serve; None if the head has no port for it."""
    ports = [{"name": name, "port": port} for name, port in _ports(cluster).items() if re.match(r"serve($|-)", name)]
    if not ports:
        return None
    own = {ORIGIN_NAME: name_of(owner), ORIGIN_KIND: "RayService", SERVES: f"{name_of(owner)}-serve"}
    details = {"name": f"{name_of(owner)}-serve-svc", "namespace": namespace_of(owner), "labels": own}
    selector = {CLUSTER: name_of(cluster), SERVES: "true"}
    return {
        "metadata": {**details, "ownerReferences": [owner_of(owner)]},
        "spec": {"selector": selector, "ports": ports},
    }


def desired_resources(cluster: JsonObject) -> JsonObject:
    """Return the requests of all pods of a cluster, as its status reports them."""
    pods = [(1, spec(cluster)["headGroupSpec"])]
    # Like the operator, use the replicas as specified, even outside of the bounds.
    pods += [
        (int(group.get("replicas") or 0) * int(group.get("numOfHosts") or 1), group)
        for group in groups_of(cluster)
        if not group.get("suspend")
    ]
    cpu = memory = gpu = 0
    for count, group in pods:
        for container in group["template"]["spec"]["containers"]:
            resources = container.get("resources") or {}
            requested = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            cpu += count * int(parse_quantity(requested.get("cpu", 0)) * 1000)
            memory += count * int(parse_quantity(requested.get("memory", 0)))
            gpu += count * sum(int(parse_quantity(requested[name])) for name in requested if _GPU.search(name))
    gib, rest = divmod(memory, 1 << 30)
    return {
        "desiredCPU": f"{cpu}m" if cpu % 1000 else str(cpu // 1000),
        "desiredMemory": str(memory) if rest or not gib else f"{gib}Gi",
        "desiredGPU": str(gpu),
    }
