"""The command as its users have it, and the hands of others inside the emulated cloud and cluster.

In scope: running gpukube (in this process, or as a process of its own), the sandbox's request log, and changes
behind gpukube's back through the Kubernetes API. Out of scope: fixtures (conftest) and assertions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from httpx2 import Timeout
from jsonschema import Draft202012Validator
from lightkube import Client, KubeConfig
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret
from lightkube.types import PatchType

from gpukube.__main__ import main
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_schema
from gpukube_sandbox import daemon
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.sandboxes import made_once
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pytest
    from lightkube.core.client import NamespacedResource

    from gpukube_sandbox.daemon import SandboxInfo

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

# What users find in their cluster; written out here, so that a change of a name is a change of a test.
NAMESPACE = "gpukube-system"
PLUGIN = "gpukube-nvidia-device-plugin"
CONFIG_MAP = "gpukube-nvidia-device-plugin-configs"

LONGEST_S = 240.0
"""For a process that ends by itself: a `pool create` works for a while, on a machine that stalls now and then."""
_READING_POSTS = ("/listClusterUserCredential", "/listClusterAdminCredential", "/selfsubjectaccessreviews")

Document = dict[str, Any]  # what -o json prints; its shape is engine/documents/shapes


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(document_schema(name))


@dataclass(frozen=True, slots=True)
class Result:
    """How one command line ended."""

    code: int
    out: str
    err: str

    def json(self) -> Document:
        """Read stdout as one JSON document, which is all that may be there, and as its schema has it."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        if document["schemaVersion"]:
            _validator(SCHEMA_NAMES[document["kind"]]).validate(document)
        return document

    def pools(self) -> list[Document]:
        """List the pools of all clusters of the document."""
        return [pool for cluster in self.json()["clusters"] for pool in cluster["pools"]]


_made: dict[str, Result] = {}
"""How creations ended whose outcome this worker's sandbox keeps."""


@dataclass(slots=True)
class Gpukube:
    """`gpukube --sandbox ...` in this process, against the sandbox of this worker."""

    info: SandboxInfo
    capsys: pytest.CaptureFixture[str]
    mark: int = 0
    log: list[Result] = field(default_factory=list)

    def __call__(self, *words: str | Path, sandbox: bool = True) -> Result:
        """Run one command line to its end; the request log is counted from here."""
        self.mark = _last_index(self.info)
        self.capsys.readouterr()
        line = [*(["--sandbox"] if sandbox else []), *map(str, words)]
        code = main(line)
        said = self.capsys.readouterr()
        result = Result(code, said.out, said.err)
        self.log.append(result)
        return result

    def made(self, *words: str | Path) -> Result:
        """Have pools created as told, which went well; where an earlier test has had the same, that is put back."""
        what = [Path(word).read_text() if Path(word).is_file() else str(word) for word in words]
        what += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("GPUKUBE_")]
        self.mark = _last_index(self.info)
        result = made_once(self.info, "\n".join(what), lambda: self._create(*words), _made)
        if not self.log or self.log[-1] is not result:
            self.log.append(result)
        return result

    def _create(self, *words: str | Path) -> Result:
        result = self("pool", "create", *words)
        assert result.code == 0, result.out + result.err
        return result

    def writes(self) -> list[str]:
        """List the changes that the last command sent, "arm PUT .../agentPools/a100mig"."""
        return writes_since(self.info, self.mark)


def _last_index(info: SandboxInfo) -> int:
    found = daemon.requests_since(info)
    return int(str(found[-1]["index"])) if found else 0


def writes_since(info: SandboxInfo, mark: int = 0) -> list[str]:
    """List the requests above an index that change something: neither reads, nor questions asked by POST, nor tries."""
    return [
        f"{request['service']} {request['method']} {request['path']}"
        for request in daemon.requests_since(info, mark)
        if request["method"] != "GET"
        and not str(request["path"]).endswith(_READING_POSTS)
        and "dryRun" not in str(request["query"])
        and request["service"] in ("arm", "kube")
    ]


def environment(state: str, changes: Mapping[str, str]) -> dict[str, str]:
    """Make the environment of a gpukube that runs from this tree, in the sandbox of a state directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUKUBE_")}
    path = os.pathsep.join((str(ROOT), str(ROOT / "providers")))
    return {**kept, "PYTHONPATH": path, "GPUKUBE_SANDBOX_STATE": state, **changes}


@contextmanager
def start_process(info: SandboxInfo, *words: str | Path, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """Start `gpukube --sandbox ...` as a process of its own; it does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpukube", "--sandbox", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(info.state_dir, environ),
        cwd=ROOT,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def run_process(info: SandboxInfo, *words: str | Path, **environ: str) -> Result:
    """Run it to its end."""
    with start_process(info, *words, **environ) as process:
        out, err = process.communicate(timeout=LONGEST_S)
        return Result(process.returncode, out, err)


def pool_states(info: SandboxInfo, cluster: str = "train") -> dict[str, str]:
    """Return the pools of an emulated cluster with the state that AKS shows."""
    clusters = daemon.status(info)["clusters"]
    assert isinstance(clusters, list)
    return {pool["name"]: pool["state"] for entry in clusters if entry["name"] == cluster for pool in entry["pools"]}


class Cluster:
    """The emulated cluster, as somebody with kubectl has it.

    Args:
        info: The sandbox; it holds one cluster of this name.
        name: Name of the cluster.
    """

    def __init__(self, info: SandboxInfo, name: str = "train") -> None:
        document = kubeconfig(info)["kubeconfig"]
        assert isinstance(document, dict)
        contexts = [entry["name"] for entry in document["contexts"] if str(entry["name"]).endswith(name)]
        config = KubeConfig.from_dict({**document, "current-context": contexts[0]})
        self.client = Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def nodes(self, pool: str) -> list[Node]:
        """List the nodes of an AKS pool."""
        return sorted(self.client.list(Node, labels={"kubernetes.azure.com/agentpool": pool}), key=_name)

    def devices(self, pool: str) -> list[dict[str, int]]:
        """Return nvidia.com/* of status.allocatable of the pool's nodes, without the domain and without zeros."""
        return [dict(_devices(node)) for node in self.nodes(pool)]

    def daemonset(self, name: str = PLUGIN, namespace: str = NAMESPACE) -> DaemonSet:
        """Read a DaemonSet."""
        return self.client.get(DaemonSet, name, namespace=namespace)

    def tolerations(self) -> list[Document]:
        """Read the tolerations of the plugin's pods."""
        pod = self.daemonset().to_dict()["spec"]["template"]["spec"]
        return list(pod.get("tolerations", []))

    def plugin_pods(self) -> list[str]:
        """List the pods of the device plugin proper."""
        found = self.client.list(Pod, namespace=NAMESPACE)
        return [_name(pod) for pod in found if _owner(pod) == PLUGIN]

    def delete_pod(self, name: str) -> None:
        """Delete a pod; its DaemonSet makes another."""
        self.client.delete(Pod, name, namespace=NAMESPACE)

    def config(self) -> dict[str, str]:
        """Read the entries of the plugin's ConfigMap."""
        return self.client.get(ConfigMap, CONFIG_MAP, namespace=NAMESPACE).data or {}

    def entry_of(self, pool: str) -> str:
        """Read which entry of the ConfigMap the nodes of a pool ask for."""
        labels = [(node.metadata.labels if node.metadata else None) or {} for node in self.nodes(pool)]
        return str(labels[0]["nvidia.com/device-plugin.config"])

    def patch_config(self, entries: Mapping[str, str | None]) -> None:
        """Change entries of the plugin's ConfigMap; None removes one."""
        self._patch(ConfigMap, CONFIG_MAP, {"data": dict(entries)})

    def patch_daemonset(self, change: Document, name: str = PLUGIN) -> None:
        """Merge a change into the plugin's DaemonSet."""
        self._patch(DaemonSet, name, change)

    def delete_daemonset(self) -> None:
        """Delete the plugin's DaemonSet."""
        self.client.delete(DaemonSet, PLUGIN, namespace=NAMESPACE)

    def delete_config_map(self) -> None:
        """Delete the plugin's ConfigMap."""
        self.client.delete(ConfigMap, CONFIG_MAP, namespace=NAMESPACE)

    def delete_release_records(self) -> None:
        """Delete Helm's records, as `helm uninstall` does in the end."""
        for secret in self.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm"}):
            self.client.delete(Secret, _name(secret), namespace=NAMESPACE)

    def label_nodes(self, pool: str, **labels: str | None) -> None:
        """Change labels of all nodes of a pool, as kubectl label does; None removes one."""
        for node in self.nodes(pool):
            self.client.patch(Node, _name(node), {"metadata": {"labels": labels}}, patch_type=PatchType.MERGE)

    def delete_nodes(self, pool: str) -> None:
        """Delete the nodes of a pool from the cluster; the cloud still counts them."""
        for node in self.nodes(pool):
            self.client.delete(Node, _name(node))

    def _patch(self, kind: type[NamespacedResource], name: str, change: Document) -> None:
        self.client.patch(kind, name, change, namespace=NAMESPACE, patch_type=PatchType.MERGE)


def _name(item: Node | Pod | Secret) -> str:
    return str(item.metadata.name) if item.metadata else ""


def _owner(pod: Pod) -> str:
    owners = (pod.metadata.ownerReferences if pod.metadata else None) or []
    return owners[0].name if owners else ""


def _devices(node: Node) -> Iterator[tuple[str, int]]:
    allocatable = (node.status.allocatable if node.status else None) or {}
    for name, count in sorted(allocatable.items()):
        if name.startswith("nvidia.com/") and int(count):
            yield name.removeprefix("nvidia.com/"), int(count)


def edited_spec(example: str, directory: Path, edit: Callable[[Document], object]) -> Path:
    """Copy an example with a change made to its data."""
    document = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
    edit(document)
    path = directory / "pools.yaml"
    path.write_text(yaml.safe_dump(document))
    return path
