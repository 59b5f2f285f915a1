"""Dataclass methods that are compiled when they are first called.

Until Python 3.13 a dataclass costs 1.3 ms: six methods, compiled one by one. A validation creates 140 dataclasses,
including those of its libraries, and calls few of their methods. Without this module, `gpukube validate -f
examples/three-clouds.yaml` takes 0.44 s of user time instead of 0.38 s: 11 % (Python 3.11, median of 20 pairs of runs).

It replaces a private function of `dataclasses` for the whole process, so only the command does it, before it imports
anything else; the library (gpukube.api) never does. Until the first call there is one visible difference:
`inspect.signature` of such a class.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Method = Callable[..., object]


def compile_when_called() -> None:
    """Compile the methods of each dataclass defined from now on at their first call."""
    if sys.version_info < (3, 13):  # later versions compile a dataclass at once, in other functions
        dataclasses._create_fn = deferring(dataclasses._create_fn)  # type: ignore[attr-defined]  # noqa: SLF001


def deferring(create: Callable[..., Method]) -> Callable[..., Method]:
    """Return a function that creates methods like `create`, but compiles each at its first call.

    Args:
        create: Compiles a method of a dataclass; its first argument is the name.
    """

    def create_deferred(name: str, *source: Any, **rest: Any) -> Method:  # noqa: ANN401 - passed through
        compiled: Method | None = None

        def method(instance: object, /, *values: object, **named: object) -> object:
            nonlocal compiled
            if compiled is None:
                compiled = create(name, *source, **rest)
                compiled.__qualname__ = method.__qualname__
                for owner in type(instance).__mro__:  # later calls use the compiled method
                    if owner.__dict__.get(name) is method:
                        setattr(owner, name, compiled)
            return compiled(instance, *values, **named)

        method.__name__ = name
        return method

    return create_deferred
