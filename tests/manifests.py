"""Manifests for property tests: of each kind, right and wrong, with values of wrong types anywhere.

In scope: strategies for manifests as plain data. Out of scope: what is asserted of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from gpukube.workload.manifests import Manifest, read_manifests
from tests.strategies import FREE

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

RESOURCES: Final = (
    "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig1g.5gb", "nvidia.com/gpu.shared", "gpu", "nvidia-gpu",
    "amd.com/gpu", "cpu", "memory", "alpha.kubernetes.io/nvidia-gpu", "requests.nvidia.com/gpu",
    "limits.nvidia.com/gpu",
)  # fmt: skip
AMOUNTS: Final = (0, 1, 2, -1, 0.5, "1", "2", "0", "500m", "1500m", "3Ki", "4Gi", "x", "", None, True, 10**30)
LABELS: Final = (
    "nvidia.com/gpu.product", "nvidia.com/gpu", "cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot", "pool",
    "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "kubernetes.azure.com/scalesetpriority",
)  # fmt: skip
IMAGES: Final = (
    "rayproject/ray:2.58.0-py312-gpu", "rayproject/ray-ml:latest", "rayproject/ray:2.9.0", "nvidia/cuda", "busybox",
    "nvidia/cuda:latest", "registry:5000/x/ray@sha256:0", "rayproject/ray-ml:2.6.3-gpu",
)  # fmt: skip
WORDS: Final = (
    "yes",
    "Exists",
    "Equal",
    "NoSchedule",
    "noSchedule",
    "spot",
    "present",
    "",
    "Always",
    "Never",
    "v2",
    "1",
    "a",
)


def _odd(of: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Draw what is meant, and now and then anything else."""
    return st.integers(0, 11).flatmap(lambda dice: of if dice else FREE)


def _mapping(**fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return _odd(st.fixed_dictionaries({}, optional=fields))


def _whole(needed: dict[str, SearchStrategy[Any]], **fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return _odd(st.fixed_dictionaries(needed, optional=fields))


def _listed(of: SearchStrategy[Any], most: int = 2) -> SearchStrategy[Any]:
    return _odd(st.lists(of, max_size=most))


WORD: Final = _odd(st.sampled_from(WORDS))
FLAG: Final = _odd(st.booleans())
COUNT: Final = _odd(st.integers(-1, 9))
AMOUNTS_OF: Final = _odd(st.dictionaries(st.sampled_from(RESOURCES), _odd(st.sampled_from(AMOUNTS)), max_size=3))
LABELLED: Final = _odd(st.dictionaries(st.sampled_from(LABELS), WORD, max_size=2))
NAMED: Final = _mapping(name=WORD, namespace=WORD, labels=LABELLED, annotations=LABELLED)
CONTAINER: Final = _whole(
    {
        "resources": _odd(
            st.fixed_dictionaries({}, optional={"limits": AMOUNTS_OF, "requests": AMOUNTS_OF}) | AMOUNTS_OF
        )
    },
    name=WORD,
    image=_odd(st.sampled_from(IMAGES)),
    env=_listed(
        _mapping(name=_odd(st.sampled_from(("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "A"))), value=WORD)
    ),
    restartPolicy=WORD,
    limits=AMOUNTS_OF,
)
AFFINITY: Final = _mapping(
    nodeAffinity=_mapping(
        requiredDuringSchedulingIgnoredDuringExecution=_mapping(
            nodeSelectorTerms=_listed(
                _mapping(
                    matchExpressions=_listed(
                        _mapping(
                            key=_odd(st.sampled_from(LABELS)),
                            operator=_odd(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Is"))),
                            values=_listed(WORD),
                        )
                    )
                )
            )
        )
    )
)
POD: Final = _whole(
    {"containers": _listed(CONTAINER)},
    initContainers=_listed(CONTAINER),
    nodeSelector=LABELLED,
    affinity=AFFINITY,
    tolerations=_listed(
        _mapping(key=_odd(st.sampled_from((*RESOURCES, "sku"))), operator=WORD, value=WORD, effect=WORD)
    ),
    resources=_mapping(limits=AMOUNTS_OF, requests=AMOUNTS_OF),
    restartPolicy=WORD,
)
TEMPLATE: Final = _whole({"spec": POD}, metadata=NAMED)
JOB: Final = _whole({"template": TEMPLATE}, parallelism=COUNT, completions=COUNT, activeDeadlineSeconds=COUNT)
STRATEGY: Final = _mapping(type=WORD, rollingUpdate=_mapping(maxSurge=COUNT | WORD, maxUnavailable=COUNT | WORD))
RAY_PARAMETERS: Final = _odd(
    st.dictionaries(st.sampled_from(("num-gpus", "num-cpus", "memory", "resources")), WORD | COUNT, max_size=2)
)
RAY_GROUP: Final = _whole(
    {"template": TEMPLATE},
    groupName=WORD,
    replicas=COUNT,
    minReplicas=COUNT,
    maxReplicas=COUNT,
    numOfHosts=COUNT,
    rayStartParams=RAY_PARAMETERS,
    resources=_odd(st.dictionaries(st.sampled_from(("GPU", "gpu", "CPU", "nvidia.com/gpu")), WORD | COUNT, max_size=2)),
    idleTimeoutSeconds=COUNT,
    priority=COUNT,
    suspend=FLAG,
)
RAY_CLUSTER: Final = _whole(
    {"workerGroupSpecs": _listed(RAY_GROUP)},
    headGroupSpec=_whole({"template": TEMPLATE}, rayStartParams=RAY_PARAMETERS),
    rayVersion=WORD,
    enableInTreeAutoscaling=FLAG,
    autoscalerOptions=_mapping(version=WORD, idleTimeoutSeconds=COUNT),
)
SPECS: Final[dict[str, tuple[str, SearchStrategy[Any]]]] = {
    "Pod": ("v1", POD),
    "Deployment": ("apps/v1", _whole({"template": TEMPLATE}, replicas=COUNT, strategy=STRATEGY)),
    "ReplicaSet": ("apps/v1", _whole({"template": TEMPLATE}, replicas=COUNT)),
    "StatefulSet": ("apps/v1", _whole({"template": TEMPLATE}, replicas=COUNT)),
    "DaemonSet": ("apps/v1", _whole({"template": TEMPLATE})),
    "Job": ("batch/v1", JOB),
    "CronJob": ("batch/v1", _whole({"jobTemplate": _mapping(spec=JOB)})),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        _whole({"replicatedJobs": _listed(_mapping(name=WORD, replicas=COUNT, template=_mapping(spec=JOB)))}),
    ),
    "RayCluster": ("ray.io/v1", RAY_CLUSTER),
    "RayJob": (
        "ray.io/v1",
        _whole({"rayClusterSpec": RAY_CLUSTER}, shutdownAfterJobFinishes=FLAG, submitterPodTemplate=TEMPLATE),
    ),
    "RayService": ("ray.io/v1", _whole({"rayClusterConfig": RAY_CLUSTER}, upgradeStrategy=_mapping(type=WORD))),
    "ResourceQuota": ("v1", _mapping(hard=AMOUNTS_OF)),
    "Notebook": ("kubeflow.org/v1", _whole({"template": TEMPLATE})),
}
"""Kind -> its version and its spec."""


@st.composite
def objects(draw: st.DrawFn) -> object:
    """Draw one object, of any kind, or something else."""
    kind = draw(st.sampled_from((*SPECS, "PodTemplate", "List", "")))
    if kind == "List":
        return {"apiVersion": "v1", "kind": "List", "items": draw(_listed(objects(), 3))}
    if kind == "PodTemplate":
        return {"apiVersion": "v1", "kind": kind, "metadata": draw(NAMED), "template": draw(TEMPLATE)}
    if not kind:
        return draw(FREE)
    version, spec = SPECS[kind]
    return {"apiVersion": draw(_odd(st.just(version))), "kind": kind, "metadata": draw(NAMED), "spec": draw(spec)}


def only(text: str) -> Manifest:
    """Read the one object of a text."""
    (manifest,) = read_manifests(text, "m.yaml").manifests
    return manifest
