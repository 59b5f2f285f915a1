"""GKE's ComputeClass: the order in which its autoscaler tries the pools of a family.

Source: docs: kubernetes-engine/concepts/about-custom-compute-classes, reference/crds/computeclass: existing pools join
a class by a label and a taint of the same key, and the autoscaler tolerates the taint for pods that select the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.scaling_order import ClassOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASS_KEY: Final = "cloud.google.com/compute-class"


def _spec(ranks: Sequence[Sequence[str]]) -> dict[str, object]:
    return {
        "nodePoolAutoCreation": {"enabled": False},
        "priorities": [{"nodepools": list(names)} for names in ranks if names],
        # Always written: the default is another one before GKE 1.33, and may take any labelled pool.
        "whenUnsatisfiable": "DoNotScaleUp",
    }


ORDER: Final = ClassOrder(
    group="cloud.google.com",
    version="v1",
    kind="ComputeClass",
    plural="computeclasses",
    key=CLASS_KEY,
    oldest="1.30.3-gke.1451000",
    spec=_spec,
)
