"""Generated worlds of foreign pools, and every command that changes pools: what is not ours stays byte for byte.

A world is one declared pool, where and how it lives, and pools of others beside it: with names, labels and tags that
were copied from it, written by half, left by a release or by another owner. Worlds of one cloud share a cluster, so
that a command meets many at once. Each run has the worlds of one cluster of nine; a full run has all 504:

    pytest --full tests/changes/test_ownership.py

One world is left out, and the documentation must name it (docs/replace.md): on GKE a pool with copied labels and no
copy of them in its tags, under the declared name, while ours lives under the second one.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpukube import api
from gpukube.cli.sandbox import Shelter
from gpukube.engine.change.draining import DrainConsent
from gpukube.engine.commands import drain
from gpukube.errors import GpukubeError
from gpukube_sandbox import daemon
from tests.changes.conftest import SPEED
from tests.changes.world import CLOUDS, OPTIONS, SMALL, World, address, loaded, prepare, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.changes.world import Document, Pool

OWNER, POOL, PROTECT, RELEASED = (f"gpukube.io/{name}" for name in ("owner", "pool", "protect", "released"))
WORLDS: Final = 504
TOGETHER: Final = 14
BATCHES: Final = WORLDS // TOGETHER
SEED: Final = 23_001
CLUSTER: Final = "train"
EMPTY: Final[Document] = {"nodes": {"autoscaling": {"min": 0, "max": 1}}}
OTHER_TYPE: Final = {"eks": "g4dn.2xlarge", "aks": "Standard_NC8as_T4_v3", "gke": "g2-standard-8"}
SECOND: Final = "b"
COPIED, BARE, HALF, OTHERS, NONE, LEFT, LEFT_TRUE = (
    "labels and tags of ours", "labels of ours", "owner alone", "another owner's", "none", "released", "released: true",
)  # fmt: skip
BY_NAME: Final = ("delete", "scale", "release", "drain", "", "")


@dataclass(frozen=True)
class Stranger:
    """A pool that this spec neither made nor adopted."""

    name: str
    marks: str
    differs: bool


@dataclass(frozen=True)
class Made:
    """One world.

    Attributes:
        name: Of the declared pool.
        lives: Name of our live pool; "" for none.
        state: Of ours: "whole", "lost" (its labels were replaced), "untagged" (its copy was removed).
        strangers: Beside it.
        command: What is asked for by name; "" for nothing.
    """

    name: str
    lives: str
    state: str
    strangers: tuple[Stranger, ...]
    command: str

    def is_left_out(self, cloud: str) -> bool:
        """Whether nothing in the cloud tells ours from a pool with copied labels."""
        bare = [one for one in self.strangers if one.marks == BARE and one.name == self.name]
        return cloud == "gke" and bool(bare) and self.lives == self.name + SECOND


def drawn(random: Random, cloud: str, name: str) -> Made:
    """Draw a world; one that the documentation leaves out is drawn again."""
    while True:
        lives = random.choice([name, name, name + SECOND, name + SECOND, ""])
        state = random.choice(["whole", "whole", "whole", "lost", "untagged"]) if lives else "whole"
        free = [one for one in (name, name + SECOND, f"{name}x", f"{name}bb") if one != lives]
        # Labels of ours are copied from a pool that has them.
        kinds = [HALF, OTHERS, NONE, LEFT] + ([LEFT_TRUE] if cloud == "gke" else [])
        kinds += [COPIED, COPIED, BARE, BARE] if lives else []
        strangers = tuple(
            Stranger(one, random.choice(kinds), random.random() < 0.5)
            for one in random.sample(free, random.choice([1, 1, 2]))
        )
        made = Made(name, lives, state, strangers, random.choice(BY_NAME))
        if not made.is_left_out(cloud):
            return made


@dataclass
class Stage:
    """A cluster with worlds in it."""

    world: World
    cloud: str
    worlds: tuple[Made, ...]
    done: Counter[str] = field(default_factory=Counter)

    def declared(self, **more: object) -> Document:
        """Write our spec."""
        return self._spec("ml", [self._pool(one.name, **more) for one in self.worlds])

    def emptied(self) -> Document:
        """Write a spec that declares none of them any more."""
        return self._spec("ml", [self._pool("last")])

    def _pool(self, name: str, **more: object) -> Pool:
        return {"name": name, **SMALL[self.cloud], **EMPTY, **more}

    def _spec(self, owner: str, pools: Sequence[Pool]) -> Document:
        return spec(owner, {CLUSTER: address(self.cloud, CLUSTER)}, pools)

    def build(self) -> None:
        """Make all pools, each by its owner, and then what others did to them."""
        ours = [self._pool(one.name, names={self.cloud: one.lives}) for one in self.worlds if one.lives]
        theirs = [
            self._pool(one.name, **({"instanceType": OTHER_TYPE[self.cloud]} if one.differs else {}))
            for made in self.worlds for one in made.strangers
        ]  # fmt: skip
        reports = self.world.create(self._spec("ml", ours), self._spec("others", theirs))
        failed = {name: str(report.error) for name, report in reports.items() if report.error}
        assert not failed, failed
        live = self.live()
        for made in self.worlds:
            before = live.get(made.lives, {})
            for stranger in made.strangers:
                self._mark(stranger, made, before, live[stranger.name])
            if made.state == "lost":
                self._write(made.lives, self._labels(before, {OWNER: None, POOL: None}), None)
            elif made.state == "untagged" and self.cloud != "gke":  # nobody can do it there
                self._write(made.lives, None, {})

    def _mark(self, stranger: Stranger, made: Made, ours: Document, theirs: Document) -> None:
        marks: Mapping[str, Mapping[str, str | None]] = {
            COPIED: {OWNER: "ml", POOL: made.name},
            BARE: {OWNER: "ml", POOL: made.name},
            HALF: {OWNER: "ml", POOL: None},
            OTHERS: {},
            NONE: {OWNER: None, POOL: None},
            LEFT: {OWNER: None, POOL: None, RELEASED: made.name},
            LEFT_TRUE: {OWNER: None, POOL: None, RELEASED: "true"},
        }
        tags = None if stranger.marks == OTHERS else self._tags(ours) if stranger.marks == COPIED else {}
        self._write(stranger.name, self._labels(theirs, marks[stranger.marks]), tags)

    def _labels(self, native: Document, changes: Mapping[str, str | None]) -> dict[str, str | None]:
        where = {"eks": native, "aks": native.get("properties", {}), "gke": native.get("config", {})}[self.cloud]
        live = where.get({"eks": "labels", "aks": "nodeLabels", "gke": "labels"}[self.cloud]) or {}
        found = {**live, **changes}
        return found if self.cloud == "gke" else {key: value for key, value in found.items() if value is not None}

    def _tags(self, native: Document) -> dict[str, str]:
        where = {"eks": native, "aks": native.get("properties", {}), "gke": native.get("config", {})}[self.cloud]
        tags = where.get("resourceLabels" if self.cloud == "gke" else "tags") or {}
        return {key: value for key, value in tags.items() if not key.startswith("goog-")}

    def _write(self, pool: str, labels: Mapping[str, str | None] | None, tags: Mapping[str, str] | None) -> None:
        """Set labels and tags as another client does; None leaves them."""
        wire: dict[str, Any] = {}
        if self.cloud == "gke":
            none = {f"gpukube_{name}": None for name in ("owner", "pool", "place", "protect", "tags")}
            wire["config"] = ({"labels": labels} if labels is not None else {}) | (
                {"resourceLabels": {**none, **tags}} if tags is not None else {}
            )
        else:
            names = ("labels", "tags") if self.cloud == "eks" else ("nodeLabels", "tags")
            wire = {name: value for name, value in zip(names, (labels, tags), strict=True) if value is not None}
        daemon.tamper(self.world.info, CLUSTER, pool, **wire)

    def live(self) -> dict[str, Document]:
        """Read every pool as the cloud gives it."""
        (plan,) = self.world.plan(self._spec("nobody", [self._pool("none")]), skip_cluster=True)
        return {pool.name: json.loads(json.dumps(pool.native, default=str)) for pool in plan.live if pool.native}

    def foreign(self) -> dict[str, str]:
        """Read the pools that are not ours, as text."""
        live = self.live()
        names = [one.name for made in self.worlds for one in made.strangers]
        return {name: json.dumps(live.get(name), sort_keys=True) for name in names}

    def told(self, document: Document, pools: Sequence[str] = (), **scope: object) -> dict[str, set[str]]:
        """Plan, and give the codes of what stands against each pool."""
        reach = api.Scope(**scope)  # type: ignore[arg-type]  # fields of a scope
        plans = api.plan(self._prepared(document, pools), self.world.run(), reach)
        return {
            pool.pool: {found.code for found in pool.diagnostics if found.severity == "error"}
            for plan in plans
            for pool in plan.pools
        }

    def apply(self, document: Document, pools: Sequence[str] = (), replace: str = "", **scope: object) -> None:
        """Apply, whatever becomes of it."""
        consent = api.Consent(allow_disruption=True, replace=replace)  # type: ignore[arg-type]  # a word of the literal
        prepared = self._prepared(document, pools)
        Shelter(self.world.info).register(prepared)
        reach = api.Scope(**scope)  # type: ignore[arg-type]  # fields of a scope
        with self._noting(replace or "apply"):
            (report,) = api.apply(prepared, self.world.run(), reach, consent)
            self.done.update(f"{replace or 'apply'}: {one.outcome}" for one in report.pools)

    def by_name(self, made: Made) -> None:
        """Do what is asked for by name, whatever becomes of it."""
        prepared, run = prepare(self.declared()), self.world.run()
        with self._noting(made.command):
            if made.command == "delete":
                api.delete(prepared, run, [made.name])
            elif made.command == "scale":
                api.scale(prepared, run, made.name, api.Size(minimum=0, maximum=2))
            elif made.command == "release":
                api.release(prepared, run, [made.name])
            elif made.command == "drain":
                drain(prepared, run, made.name, DrainConsent())
            self.done[f"{made.command}: done"] += 1

    @contextmanager
    def _noting(self, command: str) -> Iterator[None]:
        try:
            yield
        except GpukubeError as error:
            self.done.update(f"{command}: {found.code}" for found in error.diagnostics)

    def _prepared(self, document: Document, pools: Sequence[str]) -> api.Prepared:
        if not pools:
            return prepare(document)
        return api.prepare(loaded(document), api.Filters(pools=tuple(pools)))


def batch(number: int) -> tuple[str, tuple[Made, ...]]:
    """Draw the worlds of one cluster."""
    cloud = CLOUDS[number % len(CLOUDS)]
    random = Random(SEED + number)  # noqa: S311 - no secret
    return cloud, tuple(drawn(random, cloud, f"p{place:x}") for place in range(TOGETHER))


@pytest.mark.turns(9)
@pytest.mark.parametrize("number", range(9))
def test_pools_of_others_when_any_command_runs_then_the_same_byte_for_byte(number: int, world: World) -> None:
    require_unharmed(number, world)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9, BATCHES))
def test_pools_of_others_when_any_command_runs_in_more_worlds_then_also_the_same(number: int, world: World) -> None:
    require_unharmed(number, world)


def require_unharmed(number: int, world: World) -> None:
    """Run each command in the worlds of a batch: the pools of others stay as they were."""
    world.reset()
    daemon.configure(world.info, speed=SPEED)
    cloud, worlds = batch(number)
    world.make(cloud, CLUSTER, **OPTIONS[cloud])
    stage = Stage(world, cloud, worlds)
    stage.build()
    before = stage.foreign()
    assert all(text != "null" for text in before.values())
    plain, labelled = stage.declared(), stage.declared(labels={"team": "x"})
    moved = stage.declared(labels={"team": "x"}, instanceType=OTHER_TYPE[cloud])

    def unchanged(after: str) -> None:
        now = stage.foreign()
        wrong = [name for name, text in before.items() if now[name] != text]
        assert not wrong, (after, [made for made in worlds if {one.name for one in made.strangers} & {*wrong}])

    told = stage.told(plain)
    for made in worlds:
        if made.lives and any(one.marks in (COPIED, BARE) for one in made.strangers):
            assert told[made.name] & {"two-pools", "lost-marks", "marks-lost"}, (made, told[made.name])
    unchanged("plan")
    stage.apply(labelled)
    unchanged("apply")
    for replace in ("surge", "recreate"):
        codes_of = stage.told(moved, replace=replace)
        stage.done.update(f"{replace} refused: {code}" for codes in codes_of.values() for code in codes)
        free = [name for name, codes in codes_of.items() if not codes]
        if free:
            stage.apply(moved, free, replace)
        unchanged(replace)
        moved = stage.declared(labels={"team": "x"})
    for made in worlds:
        if made.command:
            stage.by_name(made)
    unchanged("by name")
    stage.apply(stage.emptied(), prune=True)
    unchanged("prune")
    assert stage.done["apply: done"], "nothing was changed: the worlds prove nothing"


def test_the_world_that_is_left_out_when_it_cannot_be_told_then_documented() -> None:
    text = " ".join((Path(__file__).parents[2] / "docs/replace.md").read_text(encoding="utf-8").split())
    assert "on GKE gpukube cannot detect" in text
    left = Made("t4", "t4b", "whole", (Stranger("t4", BARE, differs=True),), "scale")
    assert [left.is_left_out(cloud) for cloud in CLOUDS] == [False, False, True]
