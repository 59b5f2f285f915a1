"""Published pools, imported, adopted, and replaced: all that their makers chose is kept, or named and agreed to."""

from __future__ import annotations

import base64
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox.eks.userdata import Setup, read_setup
from tests.changes.imports import WHERE
from tests.cli.makers import MAKERS, OTHER_ROLE, POOL, EksMaker
from tests.cli.published import AKS, EKS, GKE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.cli.harness import Document, Gpukube
    from tests.cli.makers import Maker
    from tests.cli.published import Published

CASES: Mapping[str, tuple[str, Published]] = {
    f"{cloud}-{name}": (cloud, pool)
    for cloud, pools in (("eks", EKS), ("aks", AKS), ("gke", GKE))
    for name, pool in pools.items()
}
EDITS: Mapping[str, tuple[str, Document]] = {
    "eks": ("group.nodeRole", {"eks": {"nodeRole": OTHER_ROLE}}),
    "aks": ("maxPods", {"maxPodsPerNode": 60}),
    "gke": ("maxPodsConstraint.maxPodsPerNode", {"maxPodsPerNode": 64}),
}
"""What no live pool can become: where the cloud has it, and the fields of a pool."""
WRITTEN_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "eks": {"template.MetadataOptions.HttpEndpoint": "enabled", "template.DisableApiTermination": False},
    "aks": {"upgradeSettings.undrainableNodeBehavior": "Schedule"},
    "gke": {"autoscaling.locationPolicy": "BALANCED"},
}
"""What a maker wrote, and the services do without it."""
_NOT_IN_SPEC = re.compile(r"not in this spec, and a replacement would not have it: (\S+)")


def test_pools_when_counted_then_twenty_of_a_file_of_their_own() -> None:
    sources = [pool.source for _, pool in CASES.values()]
    assert (len(sources) >= 20, len(set(sources))) == (True, len(sources))


@pytest.fixture
def case(request: pytest.FixtureRequest) -> tuple[str, Published]:
    return CASES[request.param]


@pytest.fixture
def maker(case: tuple[str, Published], gpukube: Gpukube) -> Iterator[Maker]:
    cloud, pool = case
    made = MAKERS[cloud](gpukube.info, pool.version)
    made.make(pool)
    yield made
    made.close()


@pytest.mark.turns(4)
@pytest.mark.parametrize("case", CASES, indirect=True)
def test_pool_when_published_then_its_import_adopts_it_and_its_replacement_keeps_or_names_all(
    case: tuple[str, Published], maker: Maker, gpukube: Gpukube, tmp_path: Path
) -> None:
    cloud, pool = case
    raw, before = maker.read(), maker.members()
    imported = gpukube("pool", "import", "--cluster", WHERE[cloud].format("train"))
    spec = tmp_path / "pools.yaml"
    spec.write_text(imported.out)
    comments = imported.out.replace("\n  # ", " ")
    assert sorted(_NOT_IN_SPEC.findall(comments)) == sorted(pool.lost)

    adopt = ("--adopt-managed", "--pool", POOL) if " manages it (" in comments else ("--adopt",)
    (planned,) = gpukube("pool", "plan", "-f", spec, *adopt, "-o", "json").pools()
    assert (planned["action"], [one["code"] for one in planned["diagnostics"] if one["code"] != "managed-pool"]) == (
        "adopt",
        [],
    )
    done = gpukube("pool", "apply", "-f", spec, *adopt, "--yes")
    assert done.code == 0, done.out + done.err
    assert maker.read() == raw
    assert gpukube("pool", "plan", "diff", "-f", spec).code == 0

    where, edit = EDITS[cloud]
    spec.write_text(yaml.safe_dump(edited(yaml.safe_load(imported.out), edit)))
    replace = ("-f", spec, "--replace", pool.how)
    (planned,) = gpukube("pool", "plan", *replace, "-o", "json").pools()
    lost = [one["message"] for one in planned["diagnostics"] if one["code"] == "members-lost"]
    named = [path for message in lost for path in message.partition(": ")[2].split(", ")]
    assert (planned["action"], sorted(named)) == ("replace", sorted(pool.lost))
    if pool.lost:
        refused = gpukube("pool", "apply", *replace, "--yes")
        assert (refused.code, maker.read()) == (1, raw), refused.out + refused.err
    accepted = [word for path in pool.lost for word in ("--accept-loss", path)]
    done = gpukube("pool", "apply", *replace, *accepted, "--yes")
    assert done.code == 0, done.out + done.err

    after = maker.members(f"{POOL}b" if pool.how == "surge" else POOL)
    gone = {path for path, value in before.items() if after.get(path) != value} - {where}
    gone -= {path for path in gone if before[path] == WRITTEN_DEFAULTS[cloud].get(path)}
    unnamed = [path for path in gone if not path.startswith((*pool.lost.values(), *pool.idle))]
    assert unnamed == []
    assert [path for path, wire in pool.lost.items() if not any(one.startswith(wire) for one in gone)] == []


THEIRS: Mapping[str, tuple[Document, str]] = {
    "eks-g5-repair": ({"maxPodsPerNode": 64}, "maxPods: 64"),
    "eks-rocket-module": ({"sharing": {"timeSlicing": {"replicas": 8}}}, "replicas = 8"),
}
"""Case -> fields that gpukube sets in user data, and a part of what it writes there."""


@pytest.mark.parametrize("case", THEIRS)
def test_user_data_when_gpukube_sets_a_field_in_it_then_nodes_have_what_its_maker_set_too(
    case: str, gpukube: Gpukube, tmp_path: Path
) -> None:
    _, pool = CASES[case]
    change, written = THEIRS[case]
    maker = EksMaker(gpukube.info, "")
    maker.make(pool)
    spec = tmp_path / "pools.yaml"
    spec.write_text(gpukube("pool", "import", "--cluster", WHERE["eks"].format("train")).out)
    adopt = ("--adopt-managed", "--pool", POOL) if " manages it (" in spec.read_text() else ("--adopt",)
    assert gpukube("pool", "apply", "-f", spec, *adopt, "--yes").code == 0

    spec.write_text(yaml.safe_dump(edited(yaml.safe_load(spec.read_text()), change)))
    done = gpukube("pool", "apply", "-f", spec, "--allow-disruption", "--yes")
    assert done.code == 0, done.out + done.err
    new, old = (base64.b64decode(one["UserData"]).decode() for one in maker.read()["templates"])
    assert (written in new, written in old) == (True, False), new
    assert [line for line in old.splitlines() if line not in new] == []
    if case == "eks-g5-repair":
        assert read_setup(new, "al2023") == Setup(kubelet={"maxPods": 64}, raid="RAID0")
    else:
        theirs, settings = (tomllib.loads(text)["settings"] for text in (old, new))
        assert settings.items() >= theirs.items()


def edited(spec: Document, change: Document) -> Document:
    """Change fields of the only pool of a spec."""
    (pool,) = spec["pools"]
    for name, value in change.items():
        pool[name] = {**pool.get(name, {}), **value} if isinstance(value, dict) else value
    return spec
