"""The part of a Nimbus cluster's Kubernetes API that gpukube reads: only the nodes of the pools."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from gpukube_nimbus.in_cluster import POOL_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from gpukube_nimbus.api import NimbusApi

_GPUS: Final = {"nb.a100.8": 8, "nb.l4.1": 1}
_INSTANCES: Final = {"": 1, "1g.5gb": 7}
_SYSTEM: Final = dict.fromkeys(
    (
        "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID",
        "operatingSystem", "systemUUID",
    ),
    "nimbus",
)  # fmt: skip
_NAMED: Final = re.compile(r"/namespaces/[^/]+/[a-z]+/[^/]+$")


class KubernetesApi:
    """Serves within its `with` block."""

    def __init__(self, api: NimbusApi, site: str, cluster: str) -> None:
        def nodes() -> list[dict[str, Any]]:
            pools = api.list_pools(site, cluster).values()
            return [node for pool in pools if pool["state"] != "CREATING" for node in _nodes(pool)]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/version":
                    self._answer(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.2"})
                elif path == "/api/v1/nodes":
                    self._answer(200, {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": nodes()})
                elif _NAMED.search(path) or "/apis/nvidia.com/" in path or "/apis/resource.k8s.io/" in path:
                    self._answer(404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
                else:
                    self._answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []})

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(201, {**asked, "status": {"allowed": True}})

            def _answer(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _nodes(pool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    devices = str(_GPUS[pool["machine"]] * _INSTANCES[pool.get("mig", "")])
    for number in range(pool["nodes"]):
        name = f"{pool['name']}-{number}"
        labels = {**pool["labels"], POOL_LABEL: pool["name"], "node.kubernetes.io/instance-type": pool["machine"]}
        yield {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
            "spec": {"taints": [_taint(text) for text in pool["taints"]]},
            "status": {
                "capacity": {"nvidia.com/gpu": devices},
                "allocatable": {"nvidia.com/gpu": devices},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {**_SYSTEM, "osImage": "NimbusOS 3", "kubeletVersion": "v1.34.2"},
            },
        }


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}
