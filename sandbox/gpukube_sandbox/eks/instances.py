"""EC2 instance types of the emulated AWS.

In scope: the sandbox's own hardware table. Out of scope: gpukube's catalog; the two are maintained separately so that a
mistake in one shows.

Sources: EC2 DescribeInstanceTypes (vCPU, memory, GpuInfo), eksctl-io/eksctl pkg/utils/instance/instance_types.go (EFA,
architecture). The zones of a type are invented: as in most real regions, scarce types are missing in some zones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ZONES = ("a", "b", "c")
"""Letters of the Availability Zones of every emulated region."""
_NUMBERS: Final = {"a": 2, "b": 3, "c": 1}
_REGION: Final = re.compile(r"([a-z]+)-([a-z]+)-(\d)")
_DIRECTIONS: Final = {
    "north": "n", "south": "s", "east": "e", "west": "w", "central": "c", "northeast": "ne", "northwest": "nw",
    "southeast": "se", "southwest": "sw",
}  # fmt: skip


def zone_id(region: str, letter: str) -> str:
    """Return a zone's id, which is the same in all accounts: use1-az1.

    Which zone of an account has which id differs between accounts; here the letters do not follow the numbers, so that
    a client that takes one for the other notices.

    Source:
        docs: ram/latest/userguide/working-with-az-ids (the form).
    """
    found = _REGION.fullmatch(region)
    short = f"{found[1]}{_DIRECTIONS[found[2]]}{found[3]}" if found and found[2] in _DIRECTIONS else region
    return f"{short}-az{_NUMBERS.get(letter, 9)}"


@dataclass(frozen=True, slots=True)
class Chip:
    """A GPU model as EC2 describes it.

    Attributes:
        name: GpuInfo.Gpus[].Name.
        manufacturer: GpuInfo.Gpus[].Manufacturer.
        mib: MemoryInfo.SizeInMiB of a whole GPU.
    """

    name: str
    manufacturer: str
    mib: int


GPUS: dict[str, Chip] = {
    "T4-16GB": Chip("T4", "NVIDIA", 16384),
    "T4G-16GB": Chip("T4g", "NVIDIA", 16384),
    "V100-16GB": Chip("V100", "NVIDIA", 16384),
    "V100-32GB": Chip("V100", "NVIDIA", 32768),
    "A10G-24GB": Chip("A10G", "NVIDIA", 22888),
    "L4-24GB": Chip("L4", "NVIDIA", 22888),
    "L40S-48GB": Chip("L40S", "NVIDIA", 45776),
    "A100-40GB": Chip("A100", "NVIDIA", 40960),
    "A100-80GB": Chip("A100", "NVIDIA", 81920),
    "H100-80GB": Chip("H100", "NVIDIA", 81920),
    "H200-141GB": Chip("H200", "NVIDIA", 144384),
    "B200-180GB": Chip("B200", "NVIDIA", 183359),
    "B300-269GB": Chip("B300", "NVIDIA", 275040),
    "GB200-186GB": Chip("GB200", "NVIDIA", 189471),
    "RTXPRO4500-32GB": Chip("RTX PRO 4500", "NVIDIA", 32768),
    "RTXPRO6000-96GB": Chip("RTX PRO Server 6000", "NVIDIA", 98304),
    "V520-8GB": Chip("Radeon Pro V520", "AMD", 8192),
}
"""Model -> EC2's description; the "NVIDIA" models are those of the simulated machines."""


_ADDRESSES: Final = {
    8: "g4ad.xlarge",
    17: "t3.medium",
    29: "m5.large m6i.large m6g.large g4dn.xlarge g4dn.2xlarge g4dn.4xlarge",
    35: "t3.large",
    58: "m5.xlarge m6i.2xlarge c5.xlarge inf2.xlarge g4dn.8xlarge g4dn.16xlarge g5.xlarge g5.2xlarge g5g.xlarge "
    "g5g.2xlarge g6.xlarge g6.2xlarge g6e.xlarge g6e.2xlarge p3.2xlarge",
    100: "p5.48xlarge",
    198: "p5en.48xlarge",
    234: "g4dn.12xlarge g5.8xlarge g5.16xlarge g5g.8xlarge g6.8xlarge g6.12xlarge gr6.8xlarge g6e.8xlarge p3.8xlarge "
    "p3.16xlarge",
}
POD_ADDRESSES: Final = {name: pods for pods, names in _ADDRESSES.items() for name in names.split()}
"""Maximum pods per node by addresses of the default network, interfaces x (addresses - 1) + 2, if that is below a
managed group's maximum. Newer types, which the source does not list, have no row (aws/amazon-vpc-cni-k8s
misc/eni-max-pods.txt)."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An instance type.

    Attributes:
        name: "p4d.24xlarge".
        gpu: Key of `GPUS`; "" without.
        gpus: Physical GPUs; 0 for a fraction of one.
        fraction: Size of its part of a GPU, if it has no whole one.
        arch: x86_64 or arm64.
        efa: MaximumEfaInterfaces.
        zones: Letters of the zones that offer it.
        block: Whether it is also sold as a Capacity Block.
    """

    name: str
    vcpus: int
    memory_gib: float
    gpu: str = ""
    gpus: int = 0
    arch: str = "x86_64"
    efa: int = 0
    zones: str = "abc"
    block: bool = False
    fraction: float = 0.0

    @property
    def family(self) -> str:
        """Return the part of the name before the dot."""
        return self.name.partition(".")[0]

    @property
    def devices(self) -> int:
        """Return the number of GPUs that a node of this type shows: a fraction is one (EC2 LogicalGpuCount)."""
        return 1 if self.fraction else self.gpus

    @property
    def is_nvidia(self) -> bool:
        """Return whether it has NVIDIA GPUs."""
        return bool(self.gpu) and GPUS[self.gpu].manufacturer == "NVIDIA"


def _family(prefix: str, gpu: str, rows: str, *, arch: str = "x86_64") -> list[InstanceType]:
    """Return the types of one family, from rows of size:vcpus:GiB:gpus:efa separated by spaces."""
    found = []
    for row in rows.split():
        size, vcpus, memory, gpus, efa = row.split(":")
        found.append(InstanceType(f"{prefix}.{size}", int(vcpus), float(memory), gpu, int(gpus), arch, int(efa)))
    return found


_TABLE: tuple[InstanceType, ...] = (
    InstanceType("t3.medium", 2, 4),
    InstanceType("t3.large", 2, 8),
    InstanceType("m5.large", 2, 8),
    InstanceType("m5.xlarge", 4, 16),
    InstanceType("m6i.large", 2, 8),
    InstanceType("m6i.2xlarge", 8, 32),
    InstanceType("c5.xlarge", 4, 8),
    InstanceType("m6g.large", 2, 8, arch="arm64"),
    InstanceType("trn1.2xlarge", 8, 32, zones="ab"),
    InstanceType("inf2.xlarge", 4, 16, zones="ab"),
    InstanceType("g4ad.xlarge", 4, 16, "V520-8GB", 1),
    *_family(
        "g4dn",
        "T4-16GB",
        "xlarge:4:16:1:0 2xlarge:8:32:1:0 4xlarge:16:64:1:0 8xlarge:32:128:1:1 12xlarge:48:192:4:1 "
        "16xlarge:64:256:1:1 metal:96:384:8:1",
    ),
    *_family(
        "g5",
        "A10G-24GB",
        "xlarge:4:16:1:0 2xlarge:8:32:1:0 4xlarge:16:64:1:0 8xlarge:32:128:1:1 12xlarge:48:192:4:1 "
        "16xlarge:64:256:1:1 24xlarge:96:384:4:1 48xlarge:192:768:8:1",
    ),
    *_family(
        "g5g",
        "T4G-16GB",
        "xlarge:4:8:1:0 2xlarge:8:16:1:0 4xlarge:16:32:1:0 8xlarge:32:64:1:0 16xlarge:64:128:2:0 metal:64:128:2:0",
        arch="arm64",
    ),
    *_family(
        "g6",
        "L4-24GB",
        "xlarge:4:16:1:0 2xlarge:8:32:1:0 4xlarge:16:64:1:0 8xlarge:32:128:1:1 12xlarge:48:192:4:1 "
        "16xlarge:64:256:1:1 24xlarge:96:384:4:1 48xlarge:192:768:8:1",
    ),
    *_family("gr6", "L4-24GB", "4xlarge:16:128:1:0 8xlarge:32:256:1:1"),
    *_family(
        "g6e",
        "L40S-48GB",
        "xlarge:4:32:1:0 2xlarge:8:64:1:0 4xlarge:16:128:1:0 8xlarge:32:256:1:1 12xlarge:48:384:4:1 "
        "16xlarge:64:512:1:1 24xlarge:96:768:4:2 48xlarge:192:1536:8:4",
    ),
    InstanceType("g6f.large", 2, 8, "L4-24GB", fraction=0.125),
    InstanceType("g6f.xlarge", 4, 16, "L4-24GB", fraction=0.125),
    InstanceType("g6f.2xlarge", 8, 32, "L4-24GB", fraction=0.25),
    InstanceType("g6f.4xlarge", 16, 64, "L4-24GB", fraction=0.5),
    InstanceType("gr6f.4xlarge", 16, 128, "L4-24GB", fraction=0.5),
    *_family(
        "g7",
        "RTXPRO4500-32GB",
        "2xlarge:8:32:1:0 4xlarge:16:64:1:0 8xlarge:32:128:1:1 12xlarge:48:192:2:1 24xlarge:96:384:4:1 "
        "48xlarge:192:768:8:2",
    ),
    *_family(
        "g7e",
        "RTXPRO6000-96GB",
        "2xlarge:8:64:1:0 4xlarge:16:128:1:0 8xlarge:32:256:1:1 12xlarge:48:512:2:1 24xlarge:96:1024:4:2 "
        "48xlarge:192:2048:8:4",
    ),
    *_family("p3", "V100-16GB", "2xlarge:8:61:1:0 8xlarge:32:244:4:0 16xlarge:64:488:8:0"),
    InstanceType("p3dn.24xlarge", 96, 768, "V100-32GB", 8, efa=1, zones="ab"),
    InstanceType("p4d.24xlarge", 96, 1152, "A100-40GB", 8, efa=4, zones="ab", block=True),
    InstanceType("p4de.24xlarge", 96, 1152, "A100-80GB", 8, efa=4, zones="bc", block=True),
    InstanceType("p5.4xlarge", 16, 256, "H100-80GB", 1, efa=1, zones="ab", block=True),
    InstanceType("p5.48xlarge", 192, 2048, "H100-80GB", 8, efa=32, zones="a", block=True),
    InstanceType("p5e.48xlarge", 192, 2048, "H200-141GB", 8, efa=32, zones="b", block=True),
    InstanceType("p5en.48xlarge", 192, 2048, "H200-141GB", 8, efa=16, zones="b", block=True),
    InstanceType("p6-b200.48xlarge", 192, 2048, "B200-180GB", 8, efa=8, zones="c", block=True),
    InstanceType("p6-b300.48xlarge", 192, 4096, "B300-269GB", 8, efa=16, zones="c", block=True),
    InstanceType("p6e-gb200.36xlarge", 144, 960, "GB200-186GB", 4, arch="arm64", efa=16, zones="c", block=True),
)

TYPES: dict[str, InstanceType] = {entry.name: entry for entry in _TABLE}
