"""How the GPUs of a pool are shared, and the rules that apply on every cloud.

In scope: `Sharing` and its parts, `check_sharing`. Out of scope: the spec's syntax, and what one cloud adds or rejects.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.gpu.cloud_machines import cloud_machines
from gpukube.gpu.machines import Machine, machines
from gpukube.gpu.mig import MigProfile, find_profile, fits, is_mig_model, profiles
from gpukube.gpu.mig_room import explain_misfit, largest_fit
from gpukube.gpu.refusal import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.gpu.models import GpuModel

MigStrategy = Literal["single", "mixed"]

MIN_REPLICAS: Final = 2
"""NVIDIA/k8s-device-plugin: "number of replicas must be >= 2" (api/config/v1)."""

MPS_REPLICAS: Final = 48
MPS_REPLICAS_BEFORE_TURING: Final = 16
TURING: Final = (7, 5)
"""NVIDIA/k8s-device-plugin v0.20.0, MPS: 48 clients from compute capability 7.5 on, 16 before (V100, P100)."""


@dataclass(frozen=True, slots=True)
class MigCut:
    """MIG partitioning, the same for every GPU of a node: as many instances of one profile as fit, or a layout.

    Attributes:
        profile: As NVIDIA writes it, "1g.5gb"; "" with a layout.
        strategy: single advertises instances as nvidia.com/gpu, mixed as nvidia.com/mig-<profile>.
        layout: The instances of one GPU, such as ("3g.20gb", "2g.10gb", "2g.10gb"); () with a profile.
    """

    profile: str
    strategy: MigStrategy
    layout: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describe the partitioning of a GPU: "1g.5gb", "3g.20gb + 2 x 2g.10gb"."""
        return layout_text(self.layout) if self.layout else self.profile

    @property
    def profiles(self) -> tuple[str, ...]:
        """Each profile once, in the order written."""
        return tuple(dict.fromkeys(self.layout)) or (self.profile,)


@dataclass(frozen=True, slots=True)
class Slicing:
    """Replicas: every GPU or MIG instance is advertised several times.

    Attributes:
        mode: time-slicing (no isolation) or mps (memory caps, shared faults).
        replicas: How often each device is advertised, 2 or more.
        fail_requests_greater_than_one: Reject pods that request two shares; None leaves it to the plugin.
        rename: Append ".shared" to the resource name.
    """

    mode: Literal["time-slicing", "mps"]
    replicas: int
    fail_requests_greater_than_one: bool | None = None
    rename: bool = False


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a node's GPUs are shared; without either part, GPUs are whole."""

    mig: MigCut | None = None
    slicing: Slicing | None = None


def max_mps_replicas(model: GpuModel) -> int:
    """Return the maximum number of MPS clients per GPU that the plugin allows: 48, or 16 before Turing."""
    return MPS_REPLICAS if model.compute_capability >= TURING else MPS_REPLICAS_BEFORE_TURING


def layout_text(layout: Iterable[str]) -> str:
    """Format instances, grouping equal ones: "3g.20gb + 2 x 2g.10gb"."""
    counts = Counter(layout)
    return " + ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())


def cut_instances(model: GpuModel, cut: MigCut) -> dict[MigProfile, int]:
    """Count the instances of one GPU per profile, smallest profile first.

    A100-40GB: "1g.5gb" yields 7; ("3g.20gb", "2g.10gb", "2g.10gb") yields 2 x 2g.10gb and 1 x 3g.20gb.

    Raises:
        CatalogError: See find_profile.
    """
    if not cut.layout:
        profile = find_profile(model, cut.profile)
        return {profile: profile.max_instances}
    counts = Counter(find_profile(model, name) for name in cut.layout)
    return {profile: counts[profile] for profile in profiles(model) if counts[profile]}


def check_sharing(carrier: Machine | GpuModel, sharing: Sharing) -> list[CatalogError]:
    """Check a sharing config against the GPU, and against the machine and its cloud if given.

    Codes: mig-capable, mig-profile, mig-layout, mps-with-mig, sharing-replicas.

    Returns:
        All problems; empty if the sharing config works.
    """
    model = carrier.model if isinstance(carrier, Machine) else carrier
    found = list(_check_mig(carrier, model, sharing.mig)) if sharing.mig else []
    own_plugin = isinstance(carrier, Machine) and cloud_machines(carrier.provider).own_sharing
    return found + list(_check_slicing(model, sharing, own_plugin=own_plugin))


def _check_mig(carrier: Machine | GpuModel, model: GpuModel, cut: MigCut) -> Iterator[CatalogError]:
    unknown = [error for error in (_unknown(model, name) for name in cut.profiles) if error]
    if unknown and not is_mig_model(model):  # once, regardless of the profiles
        yield _no_mig(carrier, unknown[0]) if isinstance(carrier, Machine) else unknown[0]
        return
    if unknown:
        yield from unknown
        return
    if isinstance(carrier, Machine) and not carrier.mig_capable:
        yield _not_on_this_machine(carrier)
    if cut.layout and not fits(model, cut.layout):
        yield _too_much(model, cut)
    if cut.strategy == "single" and len(cut.profiles) > 1:
        yield _uneven(cut)


def _unknown(model: GpuModel, name: str) -> CatalogError | None:
    try:
        find_profile(model, name)
    except CatalogError as error:
        return error
    return None


def _no_mig(machine: Machine, error: CatalogError) -> CatalogError:
    """Suggest the MIG models that the machine's own cloud sells."""
    sold = sorted({m.model.name for m in machines(machine.provider) if m.mig_capable and m.status != "retired"})
    fix = f"remove sharing.mig, or choose a model with MIG: {', '.join(sold)}"
    return CatalogError(error.message, why=error.why, fix=fix, code=error.code)


def _not_on_this_machine(machine: Machine) -> CatalogError:
    if machine.mig_capable is None:
        message = f"MIG on {machine.name} is not confirmed"
    else:
        message = f"{machine.name} does not support MIG, although {machine.model} does"
    return CatalogError(
        message, why=machine.notes, fix="remove sharing.mig, or choose another instance type", code="mig-capable"
    )


def _too_much(model: GpuModel, cut: MigCut) -> CatalogError:
    return CatalogError(
        f"{cut} does not fit on one {model}",
        why=explain_misfit(model, cut.layout),
        fix=f"use fewer or smaller ones: {layout_text(largest_fit(model, cut.layout))} fits",
        code="mig-layout",
    )


def _uneven(cut: MigCut) -> CatalogError:
    return CatalogError(
        f"strategy single advertises one kind of instance, but the layout has {len(cut.profiles)}",
        why="the device plugin exits on a node with more than one kind (NVIDIA/gpu-operator#460)",
        fix="write strategy: mixed, or one profile",
        code="mig-layout",
    )


def _check_slicing(model: GpuModel, sharing: Sharing, *, own_plugin: bool) -> Iterator[CatalogError]:
    slicing = sharing.slicing
    if slicing is None:
        return
    if slicing.mode == "mps" and sharing.mig and not own_plugin:
        yield CatalogError(
            "mps cannot be combined with mig",
            why="NVIDIA's device plugin refuses MPS on MIG devices",
            fix="remove one of them, or write timeSlicing instead of mps",
            code="mps-with-mig",
        )
    if slicing.replicas < MIN_REPLICAS:
        yield CatalogError(
            f"{slicing.mode} with {slicing.replicas} replicas shares nothing",
            why="the device plugin needs 2 replicas or more",
            fix="write replicas: 2 or more, or remove the block",
            code="sharing-replicas",
        )
    elif slicing.mode == "mps" and not own_plugin and slicing.replicas > max_mps_replicas(model):
        yield CatalogError(
            f"mps with {slicing.replicas} replicas is more than {model} allows",
            why=f"the device plugin allows {MPS_REPLICAS} from compute capability 7.5 on, else "
            f"{MPS_REPLICAS_BEFORE_TURING}",
            fix=f"write replicas: {max_mps_replicas(model)} or fewer",
            code="sharing-replicas",
        )
