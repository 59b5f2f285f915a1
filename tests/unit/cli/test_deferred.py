"""Dataclasses whose methods are compiled at their first call behave as others do."""

from __future__ import annotations

import copy
import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from gpukube.cli.deferred import deferring

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 13), reason="dataclasses are compiled in one piece")


class Classes(NamedTuple):
    """A dataclass of each form that the product has."""

    plain: Any
    frozen: Any
    ordered: Any
    below: Any


def make_classes() -> Classes:
    @dataclasses.dataclass
    class Plain:
        name: str
        many: list[int] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            self.name = self.name.upper()

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Frozen:
        name: str
        values: tuple[int, ...] = ()
        secret: str = dataclasses.field(default="", repr=False)
        place: int = dataclasses.field(default=0, compare=False)

    @dataclasses.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        instance: int
        name: str = ""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Below(Ordered):
        more: int = 1

    return Classes(Plain, Frozen, Ordered, Below)


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> Classes:
    create = dataclasses._create_fn  # type: ignore[attr-defined]
    monkeypatch.setattr(dataclasses, "_create_fn", deferring(create))
    made = make_classes()
    monkeypatch.undo()
    return made


def changed(made: object) -> None:
    made.name = "other"  # type: ignore[attr-defined]


def without(made: object) -> None:
    del made.name  # type: ignore[attr-defined]


USES: Final[dict[str, Callable[[Classes], object]]] = {
    "plain": lambda of: repr(of.plain("a", [1])),
    "default factory": lambda of: of.plain("a").many is not of.plain("a").many,
    "plain, unhashable": lambda of: hash(of.plain("a")),
    "keywords": lambda of: repr(of.frozen(name="a", values=(1,), secret="b")),
    "no keywords": lambda of: of.frozen("a"),
    "missing": lambda of: of.ordered(),
    "unknown": lambda of: of.ordered(1, wrong=2),
    "named as what stands in": lambda of: of.ordered(instance=1, name="b").instance,
    "equal": lambda of: of.frozen(name="a", place=1) == of.frozen(name="a", place=2),
    "unequal": lambda of: of.frozen(name="a") == of.frozen(name="b"),
    "other type": lambda of: of.ordered(1) == 1,
    "hash": lambda of: hash(of.frozen(name="a", place=1)) == hash(of.frozen(name="a")),
    "order": lambda of: sorted([of.ordered(2), of.ordered(1, "b"), of.ordered(1, "a")]),
    "no order": lambda of: of.frozen(name="a") < of.frozen(name="b"),
    "frozen": lambda of: changed(of.frozen(name="a")),
    "frozen, deletion": lambda of: without(of.ordered(1)),
    "not frozen": lambda of: changed(of.plain("a")),
    "replace": lambda of: dataclasses.replace(of.frozen(name="a"), secret="b").secret,
    "asdict": lambda of: dataclasses.asdict(of.below(1, "a")),
    "copy": lambda of: copy.deepcopy(of.frozen(name="a", values=(1,))),
    "inherited": lambda of: (of.below(1, "a", 3), of.ordered(1, "a"), of.below(1) == of.ordered(1)),
    "inherited, frozen": lambda of: changed(of.below(1)),
    "names": lambda of: (of.frozen.__init__.__name__, of.frozen.__eq__.__qualname__),
}


def outcome(use: Callable[[Classes], object], of: Classes) -> str:
    try:
        return repr(use(of))
    except (TypeError, AttributeError) as error:
        return repr(error)


@pytest.mark.parametrize("name", USES)
def test_dataclass_when_its_methods_are_deferred_then_it_behaves_as_any_other(name: str, deferred: Classes) -> None:
    expected = outcome(USES[name], make_classes())
    assert [outcome(USES[name], deferred) for _ in range(2)] == [expected] * 2


def test_method_when_it_was_called_once_then_the_compiled_one_stands_in_the_class(deferred: Classes) -> None:
    assert "name" not in deferred.ordered.__init__.__code__.co_varnames
    deferred.below(1)
    assert "more" in deferred.below.__init__.__code__.co_varnames
    deferred.ordered(1)
    assert deferred.ordered.__init__.__code__.co_varnames == ("self", "instance", "name")
