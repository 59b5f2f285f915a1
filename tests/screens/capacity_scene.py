"""A search for capacity with a way of every class, and sources that did not answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpukube.capacity.criteria import Criteria, Place, machines_for
from gpukube.capacity.documents import capacity_document
from gpukube.capacity.finding import NO_CLUSTER
from gpukube.capacity.ways import Found, Search, Source
from gpukube.core.capacity_sources import SourceLine, Way
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.prices import NodePrice, Usd
from gpukube.core.quotas import CloudQuota, QuotaReading, QuotaUse
from gpukube.core.values import ClusterRef, Settings
from gpukube.gpu.models import parse_model

H100: Final = parse_model("H100-80GB")
CRITERIA: Final = Criteria(H100, 8, 2, 7 * 86_400)
TRAIN: Final = ClusterRef("train-eks", "eks", "train", {"account": "111122223333", "region": "us-east-1"})
EKS: Final = Place(
    Inquiry("eks", "us-east-1", Account(), Settings()), machines_for("eks", H100, 8), cluster=TRAIN
)  # fmt: skip
AKS: Final = Place(Inquiry("aks", "eastus", Account(), Settings()), machines_for("aks", H100, 8))
GKE: Final = Place(Inquiry("gke", "us-central1", Account(), Settings()), machines_for("gke", H100, 8))
P5, ND, A3 = "p5.48xlarge", "Standard_ND96isr_H100_v5", "a3-highgpu-8g"
QUOTA: Final = CloudQuota(
    "eks", "L-417A185B", "Running On-Demand P instances", "vCPUs", "111122223333/us-east-1",
    "aws service-quotas request-service-quota-increase --desired-value {value}", "docs",
)  # fmt: skip
SHORT: Final = QuotaUse(QUOTA, 384, (), QuotaReading(192, 96))
ROOMY: Final = QuotaUse(replace(QUOTA, name="L-1", title="Spot"), 384, (), QuotaReading(768, None, "not allowed"))


def paid(usd: float, *, rough: bool = False) -> NodePrice:
    return NodePrice(usd=Usd(usd, usd), source="embedded", as_of="2026-08-03", rough=rough)


ON_DEMAND: Final = Way(kind="on-demand", machine=P5, why="AWS does not publish stock of on-demand machines")
WAYS: Final = (
    Found(EKS, Way(
        kind="reservation", machine=P5, zone="us-east-1a", known="free", free=2, words="2 of 4 free", usd=0.0,
        price_source="paid", form="capacityReservation", id="cr-0123456789abcdef0",
        note="open: any matching instance of the account may take it",
    ), paid(0)),
    Found(EKS, Way(
        kind="block", machine=P5, zone="us-east-1b", known="offered", words="2 for 168 hours, 10,500.00 USD upfront",
        usd=31.25, start="2026-12-01T11:30:00Z", end="2026-12-08T11:30:00Z", form="capacityBlock", id="cbo-1",
        buy="aws ec2 purchase-capacity-block --region us-east-1 --capacity-block-offering-id cbo-1 "
        "--instance-platform Linux/UNIX",
    ), paid(31.25)),
    Found(GKE, Way(kind="spot", machine=A3, zone="us-central1-a", known="likely", words="0.82, ~10 min"),
        paid(50.61), no_quota=NO_CLUSTER),
    Found(AKS, Way(kind="spot", machine=ND, zone="1", known="possible", words="Medium"), no_quota=NO_CLUSTER),
    Found(GKE, Way(kind="flex-start", machine=A3, zone="us-central1-c", known="unlikely", words="0.2"),
        no_quota=NO_CLUSTER),
    Found(EKS, Way(kind="block", machine=P5, known="none", words="no offering for 168 hours")),
    *(Found(EKS, replace(ON_DEMAND, zone=f"us-east-1{zone}"), paid(55.04), (SHORT,)) for zone in "abd"),
    Found(EKS, Way(kind="spot", machine=P5, zone="us-east-1a", why="AWS scores no single type"), paid(21.1), (ROOMY,)),
    Found(AKS, Way(kind="on-demand", machine=ND, known="not asked", why="it is a preview"),
        paid(98.32, rough=True), no_quota=NO_CLUSTER),
)  # fmt: skip
SOURCES: Final = (
    Source("eks", SourceLine("EC2 DescribeInstanceTypeOfferings"), ("train-eks",)),
    Source("aks", SourceLine("Compute skuMixPlacementScores", "not asked", text="it is a preview"), ("aks/eastus",)),
    Source(
        "gke",
        SourceLine("Compute advice.calendarMode", "failed", "forbidden", "compute.advice.calendarMode is missing"),
        ("gke/us-central1",),
    ),
)
CAPACITY: Final = capacity_document(
    Search(WAYS, SOURCES, ("a3-ultragpu-8g is not sold in us-central1",)), CRITERIA, live=True, pool="h100",
    create="gpukube pool create -f pools.yaml --pool h100",
)  # fmt: skip
