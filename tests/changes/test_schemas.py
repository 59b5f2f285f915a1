"""What the command prints as JSON, of many states and on all clouds, is what the published schemas say."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from gpukube import guard
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_schema
from gpukube_sandbox import daemon
from tests.changes.test_state import NOBODY, OTHER_TYPE
from tests.changes.world import CLOUDS, SMALL, World, address, spec
from tests.cli.harness import Gpukube

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.changes.world import Document

SCHEMAS = {name: Draft202012Validator(document_schema(name)) for name in set(SCHEMA_NAMES.values())}


@pytest.fixture
def gpukube(world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gpukube:
    """Run the command in this process, in the sandbox of the module."""
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", world.info.state_dir)
    monkeypatch.setattr(guard, "refuse_non_loopback", lambda: None)  # an audit hook would stay for good
    return Gpukube(world.info, capsys)


@pytest.fixture
def document(world: World) -> Document:
    """Two pools on each of the three clouds, which are empty."""
    return declared(world, *CLOUDS)


def declared(world: World, *clouds: str) -> Document:
    """Two pools on each of these clouds, which are empty."""
    world.reset()
    clusters = {f"on-{cloud}": address(cloud, f"{cloud}-train") for cloud in clouds}
    types = {cloud: SMALL[cloud]["instanceType"] for cloud in clouds}
    pools = [{"name": name, "instanceType": types, "nodes": {"count": 1}} for name in ("plain", "shared")]
    pools[1]["sharing"] = {"timeSlicing": {"replicas": 4, "failRequestsGreaterThanOne": True}}
    return spec("printed", clusters, pools)


@pytest.fixture
def printed(gpukube: Gpukube, tmp_path: Path) -> Callable[..., Document]:
    """Run a command on a spec; gives the document that it printed, which fits its schema."""

    def _printed(schema: str, document: Document, *words: str, code: int = 0) -> Document:
        path = tmp_path / "pools.json"
        path.write_text(json.dumps(document))
        result = gpukube("pool", *words, "-f", path, "-o", "json")
        assert result.code == code, f"{words}: {result.out[-800:]} {result.err}"
        read = result.json()
        assert [f"{error.json_path}: {error.message}" for error in SCHEMAS[schema].iter_errors(read)] == []
        return read

    return _printed


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_documents_when_pools_come_change_and_go_then_as_the_schemas_say(
    cloud: str, printed: Callable[..., Document], world: World
) -> None:
    document = declared(world, cloud)
    edited = copy.deepcopy(document)
    edited["pools"][0] |= {"labels": {"team": "x"}, "instanceType": OTHER_TYPE}
    edited["pools"][1]["sharing"]["timeSlicing"]["replicas"] = 2
    fewer = {**document, "pools": document["pools"][:1]}

    printed("list", document, "list")
    printed("plan", document, "plan")
    printed("diff", document, "plan", "diff", code=2)
    printed("plan", document, "plan", "--skip-cluster")
    printed("report", document, "apply", "--yes")
    printed("plan", document, "plan")
    printed("diff", document, "plan", "diff")
    printed("list", document, "list")
    printed("pool", document, "get", "shared")
    printed("report", document, "verify")
    printed("diff", edited, "plan", "diff", code=2)
    printed("report", edited, "create", code=1)
    printed("report", edited, "apply", "--yes", "--allow-disruption", "--replace", "recreate")
    printed("plan", edited, "plan")
    printed("diff", fewer, "plan", "diff", code=2)
    printed("plan", fewer, "plan", "--prune")
    world.relabel(cloud, f"{cloud}-train", "plain", {"gpukube.io/protect": "true"})
    world.disown(cloud, f"{cloud}-train", "shared", NOBODY)
    printed("diff", edited, "plan", "diff", code=2)
    printed("plan", edited, "plan", "--adopt")
    printed("report", edited, "apply", "--yes", "--allow-disruption", code=3)


def test_documents_when_clouds_and_clusters_do_not_answer_then_as_the_schemas_say(
    document: Document, printed: Callable[..., Document], world: World
) -> None:
    printed("plan", document, "plan")
    daemon.add_fault(world.info, "status", service="kube", status=503, times=0)
    assert all(cluster["unknown"] for cluster in printed("plan", document, "plan", code=1)["clusters"])
    printed("diff", document, "plan", "diff", code=1)
    printed("list", document, "list")
    daemon.clear_faults(world.info)
    daemon.add_fault(world.info, "status", service="arm", status=403, code="AuthorizationFailed", times=0)
    printed("plan", document, "plan", code=5)
    printed("diff", document, "plan", "diff", code=5)
    printed("list", document, "list", code=3)
    printed("report", document, "apply", "--yes", code=3)
    daemon.clear_faults(world.info)
