"""What the sandbox's MIG manager makes of a config file of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox.kube.controllers.migmanager import custom_layout
from gpukube_sandbox.kube.nodes.shapes import GpuShape

if TYPE_CHECKING:
    from gpukube_sandbox.kube.controllers.migmanager import Layout

MIX = {"3g.20gb": 1, "2g.10gb": 2}
A100_40 = ["0x20B010DE", "0x20B110DE"]


def line(devices: object = "all", cut: dict[str, int] | None = None, **more: object) -> dict[str, Any]:
    return {"devices": devices, "mig-enabled": cut is not None, "mig-devices": cut or {}, **more}


CUT = ("3g.20gb", "2g.10gb", "2g.10gb")
CASES: dict[str, tuple[list[dict[str, Any]], Layout | None]] = {
    "all alike": ([line(cut=MIX)], (CUT, CUT)),
    "by index": ([line([0], MIX), line([1])], (CUT, None)),
    "for these boards": ([line(cut=MIX, **{"device-filter": A100_40})], (CUT, CUT)),
    "one board, not in a list": ([line(cut=MIX, **{"device-filter": "0x20B010DE"})], (CUT, CUT)),
    "for other boards": ([line(cut={"1g.10gb": 7}, **{"device-filter": ["0x20B210DE"]})], (None, None)),
    "does not fit": ([line(cut={"3g.20gb": 2, "1g.5gb": 1})], None),
    "no such GPU": ([line([2], MIX)], None),
}


@pytest.mark.parametrize("case", CASES)
def test_custom_config_when_applied_then_only_to_the_gpus_it_is_for(case: str) -> None:
    entries, layout = CASES[case]
    assert custom_layout(entries, GpuShape("A100-40GB", 2)) == layout
