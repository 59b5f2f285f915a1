"""What a text of a certain form has to look like, for people.

Lives here: a sentence for every pattern of the models. Must not live here: the patterns, which stand with their fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.spec.clusters import AWS_ACCOUNT, AZURE_GROUP, AZURE_NAME, CLUSTER_KEY, UUID
from gpukube.spec.model import KUBERNETES_VERSION, LABEL_VALUE, PERCENT
from gpukube.spec.reserved import (
    ARM_RESERVATION_GROUP,
    CAPACITY_BLOCK,
    CAPACITY_RESERVATION,
    DURATION,
    RESERVATION,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMATS"]

FORMATS: Final[Mapping[str, str]] = {
    LABEL_VALUE: 'at most 63 letters, digits, "-", "_" or ".", with a letter or digit at both ends are needed',
    CLUSTER_KEY: 'at most 63 letters, digits, "-" or "_", with a letter or digit at both ends are needed',
    AWS_ACCOUNT: "twelve digits are needed",
    AZURE_GROUP: "letters, digits, _ ( ) - and . are needed, at most 90, without . at the end",
    AZURE_NAME: "letters, digits, _ - and . are needed, a letter or digit first",
    UUID: "an id such as 11111111-2222-3333-4444-555555555555 is needed",
    KUBERNETES_VERSION: "a version such as 1.34, 1.34.2 or 1.34.1-gke.1829000 is needed",
    PERCENT: "a number of nodes, or a share such as 33% is needed",
    CAPACITY_BLOCK: "the id of a Capacity Block is needed, cr- and hexadecimal digits",
    CAPACITY_RESERVATION: "the id of a capacity reservation (cr-...) or the ARN of a resource group is needed",
    ARM_RESERVATION_GROUP: "the ARM id of a capacity reservation group is needed",
    RESERVATION: "a reservation's name, or projects/OWNER/reservations/NAME is needed",
    DURATION: "a number and s, m, h or d is needed",
}
"""Pattern -> what it wants."""
