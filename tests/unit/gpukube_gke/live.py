"""The live half over a fake SDK, on the cluster of the examples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.core.values import Settings
from gpukube_gke.facts.endpoint import Endpoint
from gpukube_gke.live.client import GkeCloud
from tests.unit.gpukube_gke.fakes import FakeIdentity, FakeSdk
from tests.unit.gpukube_gke.targets import CLUSTER

if TYPE_CHECKING:
    from gpukube.errors import GpukubeError

PLACE = "projects/ml-prod/locations/us-central1"
NAME = f"{PLACE}/clusters/train"
STANDARD: dict[str, object] = {
    "name": "train",
    "location": "us-central1",
    "locations": ["us-central1-f", "us-central1-a"],
    "selfLink": f"https://container.googleapis.com/v1/{NAME}",
    "endpoint": "34.1.2.3",
    "masterAuth": {"clusterCaCertificate": "Q0E="},
    "currentMasterVersion": "1.34.1-gke.1829001",
    "status": "RUNNING",
}


@dataclass
class Live:
    sdk: FakeSdk = field(default_factory=lambda: FakeSdk(cluster=STANDARD))
    identity: FakeIdentity = field(default_factory=FakeIdentity)
    offered: frozenset[str] = frozenset()

    @property
    def cloud(self) -> GkeCloud:
        return GkeCloud(CLUSTER, Settings(), Endpoint(), lambda: self.sdk, self.identity, offers=lambda _: self.offered)


def code_of(error: GpukubeError | None) -> str:
    assert error is not None
    return error.diagnostics[0].code
