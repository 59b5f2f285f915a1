"""How the GPUs of a pool are shared, as values, and the rules that hold on every cloud.

Lives here: `Sharing` and its parts, `check_sharing`. Must not live here: the spec's spelling of them and what
one cloud adds or refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.gpu.machines import Machine
from gpukube.gpu.mig import find_profile
from gpukube.gpu.refusal import CatalogueError

if TYPE_CHECKING:
    from gpukube.gpu.models import GpuModel

__all__ = ["MigCut", "MigStrategy", "Sharing", "Slicing", "check_sharing", "max_mps_replicas"]

MigStrategy = Literal["single", "mixed"]

MIN_REPLICAS: Final = 2
"""NVIDIA/k8s-device-plugin: "number of replicas must be >= 2" (api/config/v1)."""

MPS_REPLICAS: Final = 48
MPS_REPLICAS_BEFORE_TURING: Final = 16
TURING: Final = (7, 5)
"""NVIDIA/k8s-device-plugin v0.20.0, MPS: 48 clients from compute capability 7.5 on, 16 before (V100, P100)."""


@dataclass(frozen=True, slots=True)
class MigCut:
    """Every GPU of the node is cut into instances of one profile.

    Attributes:
        profile: As NVIDIA writes it, "1g.5gb".
        strategy: single shows instances as nvidia.com/gpu, mixed as nvidia.com/mig-<profile>.
    """

    profile: str
    strategy: MigStrategy


@dataclass(frozen=True, slots=True)
class Slicing:
    """Every GPU, or MIG instance, is shown several times.

    Attributes:
        mode: time-slicing (no isolation) or mps (memory caps, shared faults).
        replicas: How often each device is shown, 2 or more.
        fail_requests_greater_than_one: Refuse pods that ask for two shares; None leaves it to the plugin.
        rename: Show the resource with ".shared" at the end.
    """

    mode: Literal["time-slicing", "mps"]
    replicas: int
    fail_requests_greater_than_one: bool | None = None
    rename: bool = False


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node's GPUs are shared; neither part means whole GPUs."""

    mig: MigCut | None = None
    slicing: Slicing | None = None


def max_mps_replicas(model: GpuModel) -> int:
    """Give the most clients the plugin allows MPS on one GPU: 48, or 16 before Turing."""
    return MPS_REPLICAS if model.compute_capability >= TURING else MPS_REPLICAS_BEFORE_TURING


def check_sharing(carrier: Machine | GpuModel, sharing: Sharing) -> list[CatalogueError]:
    """Check a sharing against the GPU, and against the machine when one is given.

    Codes: mig-capable, mig-profile, mps-with-mig, sharing-replicas.

    Returns:
        Everything that is wrong; empty when the sharing can be had.
    """
    model = carrier.model if isinstance(carrier, Machine) else carrier
    found = _check_mig(carrier, model, sharing.mig) if sharing.mig else []
    return found + _check_slicing(model, sharing)


def _check_mig(carrier: Machine | GpuModel, model: GpuModel, cut: MigCut) -> list[CatalogueError]:
    try:
        find_profile(model, cut.profile)
    except CatalogueError as error:
        return [error]
    if isinstance(carrier, Machine) and not carrier.mig_capable:
        return [_not_on_this_machine(carrier)]
    return []


def _not_on_this_machine(machine: Machine) -> CatalogueError:
    if machine.mig_capable is None:
        message = f"whether {machine.name} can be cut with MIG is not confirmed"
    else:
        message = f"{machine.name} cannot be cut with MIG, although {machine.model} can"
    return CatalogueError(
        message, why=machine.notes, fix="drop sharing.mig, or choose another instance type", code="mig-capable"
    )


def _check_slicing(model: GpuModel, sharing: Sharing) -> list[CatalogueError]:
    slicing = sharing.slicing
    if slicing is None:
        return []
    found: list[CatalogueError] = []
    if slicing.mode == "mps" and sharing.mig:
        found.append(
            CatalogueError(
                "mps does not go together with mig",
                why="the device plugin refuses MPS on MIG devices",
                fix="drop one of them, or write timeSlicing in place of mps",
                code="mps-with-mig",
            )
        )
    if refused := _check_replicas(model, slicing):
        found.append(refused)
    return found


def _check_replicas(model: GpuModel, slicing: Slicing) -> CatalogueError | None:
    most = max_mps_replicas(model) if slicing.mode == "mps" else None
    if slicing.replicas < MIN_REPLICAS:
        return CatalogueError(
            f"{slicing.mode} with {slicing.replicas} replicas shares nothing",
            why="the device plugin wants 2 replicas or more",
            fix="write replicas: 2 or more, or drop the block",
            code="sharing-replicas",
        )
    if most is not None and slicing.replicas > most:
        return CatalogueError(
            f"mps with {slicing.replicas} replicas is more than {model} allows",
            why=f"the device plugin allows {MPS_REPLICAS} from compute capability 7.5 on, else "
            f"{MPS_REPLICAS_BEFORE_TURING}",
            fix=f"write replicas: {most} or fewer",
            code="sharing-replicas",
        )
    return None
