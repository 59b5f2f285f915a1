"""The numbers of all rules: what `gpukube validate` can say, each with a number that never changes.

Lives here: the one table, and looking things up in it. Must not live here: what a code means (the tables of codes) or
how it is said. A code that only a live run can give has no number, nor has one of a provider that is not in this
distribution: messages then show the name alone.

To add a code: write it with its sentence into its room's table of codes, give it the next free number of its range
here, and add its folder under tests/messages. The ranges: the spec GPK1xx, GPUs and machines GPK2xx, pools on their
clusters GPK3xx, EKS GPK4xx, AKS GPK5xx, GKE GPK6xx. A number is never given to another code, nor a code another number:
people write them into specs (`silence`) and search for them.
"""

from __future__ import annotations

from typing import Final

__all__ = ["RULE_IDS", "code_of", "rule_id", "rule_label"]

RULE_IDS: Final[dict[str, str]] = {
    # The spec: gpukube.spec.codes.
    "file-missing": "GPK101",
    "file-unreadable": "GPK102",
    "directory-empty": "GPK103",
    "document-empty": "GPK104",
    "encoding": "GPK105",
    "yaml-syntax": "GPK106",
    "yaml-limit": "GPK107",
    "yaml-duplicate-key": "GPK108",
    "yaml-key": "GPK109",
    "yaml-tag": "GPK110",
    "yaml-merge-key": "GPK111",
    "yaml-alias": "GPK112",
    "env-missing": "GPK113",
    "env-syntax": "GPK114",
    "set-syntax": "GPK115",
    "set-path": "GPK116",
    "unknown-key": "GPK117",
    "missing-key": "GPK118",
    "empty-value": "GPK119",
    "type": "GPK120",
    "choice": "GPK121",
    "range": "GPK122",
    "format": "GPK123",
    "unknown-cluster": "GPK124",
    "duplicate-item": "GPK125",
    "duplicate-pool": "GPK126",
    "no-instance-type": "GPK127",
    "nodes-choice": "GPK128",
    "autoscaling-range": "GPK129",
    "max-price": "GPK130",
    "sharing-choice": "GPK131",
    "mps-mig": "GPK132",
    "label-syntax": "GPK133",
    "taint-syntax": "GPK134",
    "duplicate-taint": "GPK135",
    "reserved-key": "GPK136",
    "owner-conflict": "GPK137",
    "zone-scope": "GPK138",
    "reserved-choice": "GPK139",
    "upgrade-range": "GPK140",
    "mig-choice": "GPK141",
    "pattern-empty": "GPK142",
    "yaml-ambiguous": "GPK143",
    # GPUs and machines: gpukube.codes, GPUS.
    "gpu-model": "GPK201",
    "instance-type": "GPK202",
    "instance-type-refused": "GPK203",
    "no-machine": "GPK204",
    "mig-capable": "GPK205",
    "mig-profile": "GPK206",
    "mps-with-mig": "GPK207",
    "sharing-replicas": "GPK208",
    "mig-layout": "GPK209",
    # Pools on their clusters: gpukube.codes, POOLS.
    "missing-feature": "GPK301",
    "gpu-and-type": "GPK302",
    "instance-status": "GPK303",
    "owner": "GPK304",
    "cluster-twice": "GPK305",
    "name-twice": "GPK306",
    "no-provider": "GPK307",
    "no-match": "GPK308",
    "chart-not-ours": "GPK309",
    "chart-twice": "GPK310",
    "chart-value-ours": "GPK311",
    "silence-rule": "GPK312",
    "silence-error": "GPK313",
    "silence-unused": "GPK314",
    # EKS: gpukube_eks.codes.
    "eks-name": "GPK401",
    "eks-node-count": "GPK402",
    "eks-no-nodes": "GPK403",
    "eks-zone": "GPK404",
    "eks-zones-and-subnets": "GPK405",
    "eks-image": "GPK406",
    "eks-image-machine": "GPK407",
    "eks-disk-size": "GPK408",
    "eks-disk-type": "GPK409",
    "eks-bottlerocket-mixed": "GPK410",
    "eks-bottlerocket-mig": "GPK411",
    "eks-bottlerocket-profile": "GPK412",
    "eks-bottlerocket-plugin": "GPK413",
    "eks-spot-price": "GPK414",
    "eks-label": "GPK415",
    "eks-label-value": "GPK416",
    "eks-taint": "GPK417",
    "eks-taint-value": "GPK418",
    "eks-taint-count": "GPK419",
    "eks-tag": "GPK420",
    "eks-tag-count": "GPK421",
    "eks-driver-owner": "GPK422",
    "eks-native-managed": "GPK423",
    "eks-native-refused": "GPK424",
    "eks-native-unknown": "GPK425",
    "eks-native-value": "GPK426",
    # AKS: gpukube_aks.codes.
    "aks-name": "GPK501",
    "aks-name-length": "GPK502",
    "aks-node-count": "GPK503",
    "aks-zone": "GPK504",
    "aks-image": "GPK505",
    "aks-disk-size": "GPK506",
    "aks-disk-type": "GPK507",
    "aks-mig-size": "GPK508",
    "aks-mig-profile": "GPK509",
    "aks-mixed-from-zero": "GPK510",
    "aks-renamed-from-zero": "GPK511",
    "aks-shared-from-zero": "GPK512",
    "aks-autoscaler-unready": "GPK513",
    "aks-eviction-policy": "GPK514",
    "aks-spot-price": "GPK515",
    "aks-spot-floor": "GPK516",
    "aks-label": "GPK517",
    "aks-taint": "GPK518",
    "aks-taint-value": "GPK519",
    "aks-taint-twice": "GPK520",
    "aks-tag": "GPK521",
    "aks-driver-owner": "GPK522",
    "aks-managed": "GPK523",
    "aks-managed-preview": "GPK524",
    "aks-native-managed": "GPK525",
    "aks-native-refused": "GPK526",
    "aks-native-unknown": "GPK527",
    "aks-native-value": "GPK528",
    "aks-image-machine": "GPK529",
    "aks-image-version": "GPK530",
    "aks-image-features": "GPK531",
    "aks-secure-boot": "GPK532",
    "aks-arm-driver": "GPK533",
    "aks-version": "GPK534",
    "aks-pods": "GPK535",
    "aks-few-pods": "GPK536",
    "aks-upgrade-both": "GPK537",
    "aks-surge-limit": "GPK538",
    "aks-spot-surge": "GPK539",
    "aks-spot-fixed": "GPK540",
    "aks-spot-deallocate": "GPK541",
    "aks-reservation-size": "GPK542",
    "aks-reservation-surge": "GPK543",
    "aks-reservation-excludes": "GPK544",
    "aks-placement-zones": "GPK545",
    "aks-placement": "GPK546",
    "aks-deallocate-disk": "GPK547",
    "aks-deallocate": "GPK548",
    "aks-label-overwritten": "GPK549",
    "aks-tag-limit": "GPK550",
    "aks-tag-twice": "GPK551",
    "aks-native-combination": "GPK552",
    # GKE: gpukube_gke.codes.
    "gke-name": "GPK601",
    "gke-zone": "GPK602",
    "gke-zones-divide": "GPK603",
    "gke-node-count": "GPK604",
    "gke-image": "GPK605",
    "gke-disk-size": "GPK606",
    "gke-disk-type": "GPK607",
    "gke-mig-mixed": "GPK608",
    "gke-mig-profile": "GPK609",
    "gke-fractional": "GPK610",
    "gke-renamed": "GPK611",
    "gke-clients": "GPK612",
    "gke-request-limit": "GPK613",
    "gke-spot-price": "GPK614",
    "gke-label": "GPK615",
    "gke-labels-length": "GPK616",
    "gke-taint": "GPK617",
    "gke-tag": "GPK618",
    "gke-driver-owner": "GPK619",
    "gke-driverless": "GPK620",
    "gke-own-plugin": "GPK621",
    "gke-own-driver": "GPK622",
    "gke-native-conflict": "GPK623",
    "gke-native-managed": "GPK624",
    "gke-native-refused": "GPK625",
    "gke-native-unknown": "GPK626",
    "gke-native-value": "GPK627",
}
"""Code -> number, by range."""

_CODES: Final = {number: code for code, number in RULE_IDS.items()}


def rule_id(code: str) -> str:
    """Give the number of a code; "" where it has none."""
    return RULE_IDS.get(code, "")


def rule_label(code: str) -> str:
    """Name a code as messages do: "GPK103 unknown-key", or the code alone where it has no number."""
    return f"{rule_id(code)} {code}".lstrip()


def code_of(rule: str) -> str | None:
    """Find the code that a number or a code names; None when neither is known."""
    return rule if rule in RULE_IDS else _CODES.get(rule)
