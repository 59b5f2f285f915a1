"""`kubectl`: what an administrator asks of a cluster, and what the emulated Kubernetes API answers.

What one controller or one route does is tested in sandbox/sandbox_tests/kube.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("kubectl")

SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: gpu}
spec:
  containers: [{name: main, image: cuda, resources: {limits: {nvidia.com/gpu: 1}}}]
"""
FILES = {
    "settings.yaml": SETTINGS,
    "edited.yaml": SETTINGS.replace("blue", "red"),
    "wrong.yaml": SETTINGS.replace("\ndata", "\ndate"),
    "gpu.yaml": POD,
    "half.yaml": POD.replace(": 1", ": 500m"),
}
LISTS: dict[str, list[Row]] = {
    "the cluster": [
        ("kubectl version", "Server Version: v1.34.2"),
        ("kubectl cluster-info", "Kubernetes control plane is running at https://127.0.0.1:"),
        ("kubectl get --raw /readyz", "ok"),
        ("kubectl get nodes", "NAME STATUS ROLES AGE VERSION aks-nodepool1- ... Ready <none>"),
        (
            "kubectl get nodes -o wide",
            "VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME ... 10. ... Ubuntu ... containerd://",
        ),
        (
            "kubectl describe nodes",
            "Lease: HolderIdentity: aks-nodepool1- ... Allocatable: ... Kubelet Version: v1.34.2",
        ),
        (
            "kubectl wait pods --all -n kube-system --for=condition=Ready --timeout=60s",
            "pod/coredns- ... condition met",
        ),
        ("kubectl get daemonsets -n kube-system", "azure-cns 1 1 1 1 1 ... kube-proxy 1 1 1 1 1"),
        ("kubectl get deployment coredns -n kube-system", "coredns 2/2"),
        ("kubectl describe nodes", "Non-terminated Pods: (4 in total) ... cpu 340m"),
        ("kubectl api-resources --api-group=apps", "daemonsets ds apps/v1 true DaemonSet"),
        ("kubectl explain pod.spec.tolerations", "FIELD: tolerations <[]Toleration>"),
        ("kubectl explain node.spec.taints", "FIELD: taints <[]Taint>"),
        ("kubectl top nodes", "error: Metrics API not available", 1),
    ],
    "who may do what": [
        ("kubectl auth whoami", "Username sandbox-user Groups [system:masters system:authenticated]"),
        ("kubectl auth can-i create pods", "yes"),
        ("kubectl auth can-i list pods --as bob", "no - no RBAC policy matched", 1),
        ("kubectl get pods --as system:anonymous", "(Forbidden)", 1),
        ("kubectl --token wrong get pods", "You must be logged in to the server (Unauthorized)", 1),
        ("kubectl delete ns kube-system --dry-run=server", "(Forbidden) ... this namespace may not be deleted", 1),
    ],
    "objects": [
        ("kubectl apply -f settings.yaml --dry-run=server", "configmap/settings created (server dry run)"),
        ("kubectl get configmap settings", '(NotFound): configmaps "settings" not found', 1),
        ("kubectl apply -f wrong.yaml", 'strict decoding error: unknown field "date"', 1),
        ("kubectl apply -f settings.yaml", "configmap/settings created"),
        ("kubectl diff -f settings.yaml", ""),
        ("kubectl diff -f edited.yaml", "- colour: blue + colour: red", 1),
        ("kubectl apply -f edited.yaml", "configmap/settings configured"),
        ("""kubectl patch configmap settings -p '{"data":{"size":"9"}}'""", "configmap/settings patched"),
        (
            "kubectl get configmaps --field-selector metadata.name=settings -o jsonpath={..data}",
            "colour ... red ... size",
        ),
        ("kubectl label configmap settings team=a", "configmap/settings labeled"),
        ("kubectl annotate configmap settings note=b", "configmap/settings annotated"),
        ("kubectl get configmaps -l team=a -o name", "configmap/settings"),
        ("kubectl create configmap settings", 'configmaps "settings" already exists', 1),
        ("kubectl delete configmap settings", 'configmap "settings" deleted'),
        ("kubectl run BAD_Name --image=x", "metadata.name: Invalid value: ... a lowercase RFC 1123 subdomain", 1),
    ],
    "taints and drains": [
        ("kubectl taint nodes $all a=x:NoSchedule a=y:PreferNoSchedule", "tainted"),
        ("kubectl get nodes -o jsonpath={..taints[*].effect}", "NoSchedule PreferNoSchedule"),
        ("kubectl taint nodes $all a-", "untainted"),
        ("kubectl get nodes -o jsonpath={..taints}", ""),
        ("kubectl create deployment web --image=web:1 --replicas=2", "deployment.apps/web created"),
        ("kubectl rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("kubectl get deployment web -o wide", "web 2/2 2 2 ... web web:1 app=web"),
        ("kubectl get pods -l app=web -o wide", "NODE NOMINATED NODE READINESS GATES ... 1/1 Running 0"),
        ("kubectl drain $all --ignore-daemonsets --delete-emptydir-data --timeout=60s", "evicted ... drained"),
        ("kubectl get nodes", "Ready,SchedulingDisabled"),
        ("kubectl uncordon $all", "uncordoned"),
        ("kubectl set image deployment/web web=web:2", "deployment.apps/web image updated"),
        ("kubectl scale deployment/web --replicas=1", "deployment.apps/web scaled"),
        ("kubectl rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("kubectl rollout history deployment/web", "REVISION CHANGE-CAUSE 1 <none> 2 <none>"),
        ("kubectl rollout undo deployment/web", "deployment.apps/web rolled back"),
        ("kubectl rollout status deployment/web --timeout=60s", "successfully rolled out"),
        ("kubectl rollout history deployment/web", "REVISION CHANGE-CAUSE 2 <none> 3 <none>"),
        ("kubectl describe pod -l app=web", "IPs: IP: 10.244."),
        ("kubectl exec deploy/web -- nvidia-smi -L", '"nvidia-smi": executable file not found in $PATH', 1),
        ("kubectl exec deploy/web -- ls", "(NotImplemented): the sandbox does not emulate exec of ls", 1),
        ("kubectl port-forward deploy/web 8080:80", "the sandbox does not emulate portforward", 1),
        ("kubectl delete deployment web", 'deployment.apps "web" deleted'),
    ],
    "a pod that waits": [
        ("kubectl apply -f half.yaml", 'limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer', 1),
        ("kubectl apply -f gpu.yaml", "pod/gpu created"),
        ("kubectl wait pod/gpu --for=condition=PodScheduled=False --timeout=60s", "pod/gpu condition met"),
        (
            "kubectl describe pod gpu",
            (
                "nvidia.com/gpu:NoSchedule op=Exists ... Warning FailedScheduling"
                " ... default-scheduler 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
            ),
        ),
        ("kubectl get events --field-selector involvedObject.name=gpu", "Warning FailedScheduling pod/gpu"),
        ("kubectl logs gpu", ""),
        ("kubectl delete pod gpu", 'pod "gpu" deleted'),
    ],
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", LISTS)
def test_kubectl_when_it_asks_then_answered_as_by_a_real_server(referee: Referee, name: str) -> None:
    for file, text in FILES.items():
        (referee.cwd / file).write_text(text)
    referee.names["all"] = "-l kubernetes.azure.com/cluster"
    referee.asks([("kubectl config use-context train", 'Switched to context "train".')])
    referee.asks(LISTS[name])
