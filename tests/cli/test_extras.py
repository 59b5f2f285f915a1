"""One extra is enough for its cloud: the others' libraries may be missing, and are named where they are missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES, run_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

LIBRARIES = {"eks": ("boto3", "botocore"), "aks": ("azure",), "gke": ("google", "grpc")}
SPECS = {"eks": "eks-timeslicing", "aks": "aks-timeslicing", "gke": "gke-t4-n1"}


@pytest.fixture
def fresh_state(tmp_path: Path) -> Iterator[Path]:
    """A state directory whose sandbox the command itself starts, with the libraries that it has."""
    state = tmp_path / "state"
    yield state
    daemon.down(state)


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", LIBRARIES)
def test_create_when_only_its_own_sdk_is_installed_then_proven(
    cloud: str, sandbox: SandboxInfo, without: Callable[..., str]
) -> None:
    others = [name for other, names in LIBRARIES.items() if other != cloud for name in names]
    spec = EXAMPLES / f"{SPECS[cloud]}.yaml"
    done = run_process(sandbox, "pool", "create", "-f", spec, PYTHONPATH=without(*others))
    assert done.code == 0, done.out + done.err
    assert "created" in done.out


@pytest.mark.turns(3)
@pytest.mark.parametrize("hidden", LIBRARIES)
def test_create_when_one_sdk_of_three_is_missing_then_its_extra_is_named_before_any_request(
    hidden: str, sandbox: SandboxInfo, without: Callable[..., str]
) -> None:
    path = without(*LIBRARIES[hidden])
    spec = ("-f", EXAMPLES / "three-clouds.yaml")
    refused = run_process(sandbox, "pool", "create", *spec, PYTHONPATH=path)
    assert refused.code == 1, refused.out + refused.err
    assert f"train-{hidden}: error[missing-extra]" in refused.err
    assert f"pip install 'gpukube[{hidden}]'" in refused.err
    assert "Traceback" not in refused.err
    assert daemon.requests_since(sandbox) == []

    rest = [word for cloud in LIBRARIES if cloud != hidden for word in ("--cluster", f"train-{cloud}")]
    planned = run_process(sandbox, "pool", "plan", *spec, *rest, PYTHONPATH=path)
    assert planned.code == 0, planned.out + planned.err
    assert "plan: 4 to create" in planned.out


@pytest.mark.turns(3)
@pytest.mark.parametrize("hidden", LIBRARIES)
def test_plan_when_the_sandbox_itself_lacks_the_sdk_then_one_and_the_extra_is_named(
    hidden: str, sandbox: SandboxInfo, fresh_state: Path, without: Callable[..., str]
) -> None:
    spec = EXAMPLES / f"{SPECS[hidden]}.yaml"
    environ = {"PYTHONPATH": without(*LIBRARIES[hidden]), "GPUKUBE_SANDBOX_STATE": str(fresh_state)}
    refused = run_process(sandbox, "pool", "plan", "-f", spec, **environ)
    assert refused.code == 1, refused.out + refused.err
    assert "error[missing-extra]" in refused.out + refused.err
    assert f"pip install 'gpukube[{hidden}]'" in refused.out + refused.err
    assert "Traceback" not in refused.err


@pytest.mark.turns(3)
@pytest.mark.parametrize("hidden", LIBRARIES)
def test_validate_when_no_sdk_of_its_cloud_is_installed_then_it_is_not_missed(
    hidden: str, sandbox: SandboxInfo, without: Callable[..., str]
) -> None:
    path = without(*(name for names in LIBRARIES.values() for name in names))
    fine = run_process(sandbox, "validate", "-f", EXAMPLES / f"{SPECS[hidden]}.yaml", PYTHONPATH=path)
    assert (fine.code, fine.out) == (0, "ok: 1 pool on 1 cluster\n"), fine.err
