"""Expanders: which of several possible scale-ups the autoscaler chooses.

In scope: the expanders by name, and chains of them; pure except for the random choice. Out of scope: estimating what
each would achieve (`estimating`), reading the ConfigMap of priorities (`priorities`).

Source: kubernetes-sigs/cluster-autoscaler pkg/expander (factory, waste, mostpods, leastnodes, random).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.matching import pod_requests, resources_of
from gpukube_sandbox.kube.store.objects import status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from gpukube_sandbox.kube.autoscaler.estimating import Option

PRIORITY, RANDOM, PRICE = "priority", "random", "price"


def least_waste(options: Sequence[Option]) -> list[Option]:
    """Keep the options that leave the smallest share of CPU and memory unused."""
    return _lowest(options, _waste)


def most_pods(options: Sequence[Option]) -> list[Option]:
    """Keep the options that fit the most pods."""
    return _lowest(options, lambda option: -len(option.pods))


def least_nodes(options: Sequence[Option]) -> list[Option]:
    """Keep the options with the fewest nodes."""
    return _lowest(options, lambda option: option.count)


def cheapest(options: Sequence[Option]) -> list[Option]:
    """Keep one option as GKE's own expander does, which compares prices: here, few GPUs stand for a low price."""
    return [min(options, key=lambda option: option.rank)]


FILTERS: Final[dict[str, Callable[[Sequence[Option]], list[Option]]]] = {
    "least-waste": least_waste,
    "most-pods": most_pods,
    "least-nodes": least_nodes,
    PRICE: cheapest,
}
_NAMES: Final = frozenset({*FILTERS, PRIORITY, RANDOM})
_FINAL: Final = frozenset({RANDOM})
"""Expanders that leave one option, so that none may follow."""


def chain_error(names: Sequence[str]) -> str:
    """Return why the autoscaler would not start with this chain; "" if it does."""
    for at, name in enumerate(names):
        if name in names[:at]:
            return f"Expander {name} was specified multiple times, each expander must not be specified more than once"
        if at and names[at - 1] in _FINAL:
            last = names[at - 1]
            text = f"Expander {name} came after an expander {last} that will always return only one result"
            return f"{text}, this is not allowed since {name} will never be used"
        if name not in _NAMES:
            return f"Expander {name} not supported"
    return ""


def pick(options: Sequence[Option], chance: Random) -> Option:
    """Return any of the options that no expander of the chain tells apart."""
    return options[chance.randrange(len(options))]


def _waste(option: Option) -> float:
    room = resources_of(status(option.template.node).get("capacity") or {})
    used = [pod_requests(pod) for pod in option.pods]
    shares = []
    for name in ("cpu", "memory"):
        whole = room[name] * option.count
        shares.append((whole - sum(one[name] for one in used)) / whole)
    return sum(shares)


def _lowest(options: Sequence[Option], score: Callable[[Option], float]) -> list[Option]:
    scores = [score(option) for option in options]
    return [option for option, found in zip(options, scores, strict=True) if found == min(scores)]
