"""What EC2 refuses when it launches an instance from a template, beyond what it refuses in the template itself.

In scope: network interfaces, volumes, and placement of an instance type. Out of scope: rules of EKS (`rules`), named
resources (`references`), rules over the template alone (`templates`).

EKS tries the template before it makes or changes a node group, and passes on EC2's message as InvalidRequestException
(cloudposse/terraform-aws-eks-node-group#77, eksctl-io/eksctl#7520). A message without a source is unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.cards import EFA_TYPES, cards_of, efa_count
from gpukube_sandbox.eks.placement import placement_name, requested_placement, strategies_of, unknown_group, zone_of
from gpukube_sandbox.eks.wire.answers import Json, bad_parameter, bad_request, objects_in, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.instances import InstanceType

_OF_ADDRESSES = (
    "Ipv4PrefixCount", "Ipv6AddressCount", "Ipv6PrefixCount", "PrimaryIpv6", "PrivateIpAddress",
    "SecondaryPrivateIpAddressCount",
)  # fmt: skip
"""Members of an interface that need an IP address, which an `efa-only` one does not have (botocore ec2)."""
_IOPS_PER_GIB = {"gp3": 500, "io1": 50, "io2": 1000}  # docs: ebs/latest/userguide/ebs-volume-types
_MIB_PER_IOPS = 0.25
_GP3_IOPS = 3000


def check_launch(data: Json, types: Sequence[InstanceType], subnets: Sequence[str], cluster: EksCluster) -> None:
    """Reject a template that no instance of these types could be launched from.

    Args:
        data: Data of the template.
        types: The instance types of the node group.
        subnets: Its subnets.
        cluster: Its cluster.

    Raises:
        AwsError: 400.
    """
    for mapping in objects_in(data.get("BlockDeviceMappings")):
        _check_volume(mapping)
    interfaces = objects_in(data.get("NetworkInterfaces"))
    if interfaces:
        _check_interfaces(interfaces)
        for kind in types:
            _check_cards(interfaces, kind)
            if efa_count(data) > kind.efa:  # EC2's code: AttachmentLimitExceeded
                message = f"The number of EFA interfaces exceeds the limit of {kind.efa} for {kind.name}"
                raise bad_request(message)
    _check_placement(data, types, subnets, cluster)


def _check_interfaces(interfaces: list[Json]) -> None:
    if any(entry.get("SubnetId") for entry in interfaces):  # terraform-aws-modules/terraform-aws-eks#2256
        message = "You must not specify a subnet in your launch template. All subnets must be specified in the API."
        raise bad_parameter(message)
    if any("DeviceIndex" not in entry for entry in interfaces):  # hashicorp/packer#2242
        raise bad_request("Each network interface requires a device index.")
    places = [_place(entry) for entry in interfaces]
    if (0, 0) not in places:  # aws/aws-parallelcluster#5984
        message = "you must include a device at index 0 and network card at index 0."
        raise bad_request(f"When specifying network interfaces, {message}")
    if len({*places}) < len(places):
        raise bad_request("Each network interface of a network card requires a unique device index.")
    if len(interfaces) > 1 and any(entry.get("AssociatePublicIpAddress") == "true" for entry in interfaces):
        # zalando-incubator/kubernetes-on-aws#8733
        message = (
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces"
        )
        raise bad_request(message)
    for entry in interfaces:
        if entry.get("InterfaceType") != "efa-only":
            continue
        if _place(entry) == (0, 0):  # docs: AWSEC2/latest/UserGuide/efa, EFA-only cannot be the primary interface
            raise bad_request("The primary network interface cannot be of type efa-only.")
        if given := [name for name in _OF_ADDRESSES if name in entry]:
            raise bad_request(f"The parameter {given[0]} cannot be specified for an interface of type efa-only.")


def _check_cards(interfaces: list[Json], kind: InstanceType) -> None:
    if not kind.efa and any(entry.get("InterfaceType") in EFA_TYPES for entry in interfaces):
        # openshift/enhancements, machine-api/aws-efa-networking; EC2's code: UnsupportedOperation
        raise bad_request(f"EFA interfaces are not supported on {kind.name}")
    cards = {card.index: card for card in cards_of(kind)}
    for entry in interfaces:
        card, device = _place(entry)
        if card not in cards:
            message = f"The specified network card index {card} is not valid for {kind.name}"
            raise bad_request(f"{message}, which has {len(cards)} network cards.")
        if device >= cards[card].most:  # eksctl-io/eksctl#7520
            most = cards[card].most
            message = (
                f"The specified number '{device}' for the device index exceeds the maximum number of network "
                f"interfaces supported by the network card at network card index {card}. The maximum devices for this "
                f"network card is {most}. Specify a number from 0 to {most - 1}, and try again."
            )
            raise bad_request(message)
        if (wanted := str(entry.get("InterfaceType") or "interface")) not in cards[card].kinds:
            # EC2's code: AttachmentLimitExceeded
            message = f"The network card at network card index {card} of {kind.name} supports no interface of type"
            raise bad_request(f"{message} {wanted}")


def _place(entry: Json) -> tuple[int, int]:
    return whole(entry.get("NetworkCardIndex", 0)), whole(entry.get("DeviceIndex", 0))


def _check_volume(mapping: Json) -> None:
    ebs = mapping.get("Ebs")
    if not isinstance(ebs, dict):
        return
    kind, device = str(ebs.get("VolumeType", "gp2")), mapping.get("DeviceName", "/dev/xvda")
    if kind in {"st1", "sc1"} and device == "/dev/xvda":  # docs: ebs/latest/userguide/ebs-volume-types
        message = f"The {kind} volume type cannot be used for boot volumes."
        raise bad_request(f"{message} Please use a supported boot volume type: standard,io1,gp2.")
    if ebs.get("KmsKeyId") and ebs.get("Encrypted") != "true":  # kubernetes/kubernetes#31334
        raise bad_request("The parameter KmsKeyId requires the parameter Encrypted to be set.")
    if "Encrypted" in ebs and ebs.get("SnapshotId"):  # hashicorp/terraform-provider-aws, tests of aws_autoscaling_group
        raise bad_request(f"the encrypted flag cannot be specified since device {device} has a snapshot specified.")
    iops, size = whole(ebs.get("Iops", _GP3_IOPS)), whole(ebs.get("VolumeSize", 0))
    most = _IOPS_PER_GIB.get(kind)
    if most and size and "Iops" in ebs and iops > max(_GP3_IOPS if kind == "gp3" else 0, most * size):
        ratio = iops / size  # rocicorp/mono#4410
        raise bad_request(f"Iops to volume size ratio of {ratio:.6f} is too high; maximum is {most}")
    if "Throughput" in ebs and whole(ebs["Throughput"]) > iops * _MIB_PER_IOPS:  # runs-on/runs-on#260
        ratio = whole(ebs["Throughput"]) / iops
        message = f"Throughput (MiBps) to iops ratio of {ratio:.6f} is too high; maximum is {_MIB_PER_IOPS:.6f}"
        raise bad_request(f"{message} MiBps per iops")


def _check_placement(data: Json, types: Sequence[InstanceType], subnets: Sequence[str], cluster: EksCluster) -> None:
    placement = requested_placement(data, cluster.known)
    if placement is None:
        if name := placement_name(data):
            raise bad_request(unknown_group(name).message)
        return
    for kind in types:
        if placement.strategy not in strategies_of(kind):  # instance launch guides repeat the message
            message = f"Cluster placement groups are not supported by the '{kind.name}' instance type."
            raise bad_request(
                f"{message} Specify a supported instance type or change the placement group strategy, and try again."
            )
    zone = zone_of(cluster.known, placement)
    if zone and any(f"{cluster.region}{cluster.zone(name)}" != zone for name in subnets):
        # terraform-aws-modules/terraform-aws-eks#3045
        message = f"Instances in the {placement.name} Placement Group must be launched in the {zone} Availability Zone."
        raise bad_request(f"{message} Specify the {zone} Availability Zone and try again.")
