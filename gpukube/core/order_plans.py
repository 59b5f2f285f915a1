"""Plans of the objects that give an autoscaler the order of families: created, changed, or left alone.

Pure. In scope: comparing a live object with the order. Out of scope: which object a cluster needs (engine.plan.orders),
and the calls (engine.change.ordering).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.expander import (
    KEY,
    NAME,
    RECORD,
    OrderError,
    lines_of,
    merge,
    missing_lines,
    out_of_order,
    parse_priorities,
    record,
    recorded,
    render,
)
from gpukube.core.jsontree import text, texts, tree
from gpukube.core.values import FAMILY_LABEL, OWNER_LABEL
from gpukube.core.yamltext import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.expander import Priorities
    from gpukube.core.jsontree import Tree
    from gpukube.core.scaling_order import ClassOrder, FamilyOrder, GroupOrder

OrderAction = Literal["create", "update", "none", "foreign"]
CONFIG_MAP: Final = "ConfigMap"
_WHY: Final[dict[OrderAction, str]] = {
    "create": "it does not exist",
    "update": "it has another order",
    "none": "it has this order",
    "foreign": "it is not of this family",
}


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """What happens to one object.

    Attributes:
        kind, name, namespace: The object; namespace is "" for one of the cluster.
        action: foreign: it is not gpukube's, or cannot be read, and does not have the order.
        why: One line.
        orders: The families that it orders for this run.
        content: What it will say, as text; for a foreign object the lines that it needs.
        desired: The object to write; empty if nothing is written.
        live: The object as read; None if there is none.
    """

    kind: str
    name: str
    namespace: str
    action: OrderAction
    why: str
    orders: tuple[FamilyOrder, ...]
    content: str
    desired: Tree = field(default_factory=dict)
    live: Tree | None = None

    @property
    def acts(self) -> bool:
        """Whether something is written."""
        return self.action in ("create", "update")

    def __str__(self) -> str:
        """Render the object as kubectl does, with its namespace if it has one."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def plan_map(
    live: Tree | None, namespace: str, orders: Sequence[FamilyOrder], how: GroupOrder, kept: Sequence[FamilyOrder] = ()
) -> OrderPlan:
    """Plan the ConfigMap of the priority expander.

    Args:
        live: The map; None if there is none.
        namespace: Namespace of the autoscaler.
        orders: The families to order.
        how: How the cloud names its groups.
        kept: Other families of gpukube that stay in the map.
    """

    def planned(action: OrderAction, why: str, lines: Priorities, desired: Tree | None = None) -> OrderPlan:
        return OrderPlan(
            CONFIG_MAP, NAME, namespace, action, why, tuple(orders), render(lines), desired=desired or {}, live=live
        )

    before = recorded(live) if live is not None else ()
    own = lines_of(orders, how.group)
    try:
        found = parse_priorities(text(live, "data", KEY)) if live is not None else {}
    except OrderError as error:
        return planned("foreign", f"its {KEY} cannot be read: {error}", own)
    if before is None:
        if swapped := out_of_order(found, orders, how.group):
            return planned("foreign", f"it is not gpukube's, and has another order for {', '.join(swapped)}", own)
        lacking = missing_lines(found, own)
        why = "it is not gpukube's, and " + ("lacks lines" if lacking else "has all lines")
        return planned("foreign" if lacking else "none", why, lacking)
    after = sorted((*kept, *orders), key=lambda order: (order.owner, order.family))  # whoever writes last
    wanted, note = merge(found, before, after, how.group), record(after)
    same = live is not None and wanted == found and text(live, "metadata", "annotations", RECORD) == note
    action: OrderAction = "create" if live is None else "none" if same else "update"
    desired = {
        "apiVersion": "v1",
        "kind": CONFIG_MAP,
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "annotations": {**texts(live, "metadata", "annotations"), RECORD: note},
        },
        "data": {**texts(live, "data"), KEY: render(wanted)},
    }
    return planned(action, _WHY[action], wanted, desired)


def plan_class(live: Tree | None, order: FamilyOrder, how: ClassOrder) -> OrderPlan:
    """Plan the class of a family; one of the same name that is not this family's is foreign."""
    marks = {OWNER_LABEL: order.owner, FAMILY_LABEL: order.family}
    spec, there = dict(how.spec(order.ranks)), tree(live, "spec")
    content = dump_yaml({"spec": spec})
    # Other fields stay: somebody may have set them, and the cluster may fill in defaults.
    action: OrderAction = "create" if live is None else "none" if {**there, **spec} == there else "update"
    if live is not None and marks.items() - texts(live, "metadata", "labels").items():
        action = "foreign"
    desired = {
        "apiVersion": f"{how.group}/{how.version}",
        "kind": how.kind,
        "metadata": {"name": order.family, "labels": marks},
        "spec": {**there, **spec},
    }
    why = _WHY[action] + (f"; pods select {how.key}: {order.family}" if action == "create" else "")
    return OrderPlan(how.kind, order.family, "", action, why, (order,), content, desired, live)
