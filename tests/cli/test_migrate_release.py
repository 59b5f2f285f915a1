"""From the device-plugin chart to the GPU Operator by the command: refused unasked, done when allowed, proven after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Gpukube


def spec(tmp_path: Path, *, cut: bool) -> Path:
    """Write two pools of one EKS cluster, or the uncut one alone."""
    document = yaml.safe_load((EXAMPLES / "eks-timeslicing.yaml").read_text())
    if cut:
        document["pools"] += yaml.safe_load((EXAMPLES / "eks-mig.yaml").read_text())["pools"]
    path = tmp_path / "pools.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_apply_when_a_pool_needs_the_operator_then_refused_until_allowed_and_proven_after(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    gpukube.made("-f", spec(tmp_path, cut=False))
    both = spec(tmp_path, cut=True)
    refused = gpukube("pool", "apply", "--yes", "--allow-disruption", "-f", both)
    assert (refused.code, gpukube.writes()) == (1, [])
    assert "--migrate-release uninstalls it first" in refused.out
    shown = gpukube("pool", "plan", "--migrate-release", "-f", both)
    assert "gpukube-system/gpukube-nvidia-device-plugin" in shown.out
    done = gpukube("pool", "apply", "--yes", "--allow-disruption", "--migrate-release", "-f", both)
    assert done.code == 0, done.out + done.err
    assert gpukube("pool", "plan", "diff", "-f", both).code == 0
    assert gpukube("pool", "verify", "-f", both).code == 0
