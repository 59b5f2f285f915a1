"""What rows of GKE's fields share: the names of the update calls, sentences on effects, and sources.

In scope: these texts. Out of scope: which field has which effect (`fields`, `node_settings`, `members`).

A source that begins with "google.container.v1" is a comment of that message's field; "Terraform" is the ForceNew list
of GoogleCloudPlatform/magic-modules, mmv1/third_party/terraform/services/container/node_config.go.tmpl. If it is not
documented whether a change recreates nodes, the row assumes that it does.
"""

from __future__ import annotations

from typing import Final

UPDATE: Final = "update_node_pool"
SET_SIZE: Final = "set_node_pool_size"
SET_SCALING: Final = "set_node_pool_autoscaling"
SET_MANAGEMENT: Final = "set_node_pool_management"

AT_CREATION: Final = "set at creation only"
RECREATED: Final = "GKE recreates the nodes, one surge at a time, draining each"
MAYBE_RECREATED: Final = "GKE may recreate the nodes, one surge at a time, draining each"
NEXT_UPGRADE: Final = "takes effect at the next upgrade"
NEXT_DRAIN: Final = "takes effect at the next drain"
FROM_NOW_ON: Final = "takes effect immediately"
RUN_DURATION: Final = (
    "set at creation, as in Terraform; the effect of UpdateNodePool on live nodes is not documented (unconfirmed)"
)

PROTO: Final = "google.container.v1 UpdateNodePoolRequest."
NO_CALL: Final = "google.container.v1: in no update call"
TERRAFORM: Final = "Terraform: ForceNew (GoogleCloudPlatform/magic-modules, node_config.go.tmpl)"
