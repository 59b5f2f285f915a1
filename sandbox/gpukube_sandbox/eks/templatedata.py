"""Members of LaunchTemplateData: their names in requests and in responses.

In scope: the table. Out of scope: rules (`templates`). InstanceRequirements and members that no node group needs are
not in it, and are rejected.

Source: botocore ec2/2016-11-15 RequestLaunchTemplateData and ResponseLaunchTemplateData.
"""

from __future__ import annotations

from gpukube_sandbox.eks.wire.query import Member


def _texts(names: str) -> tuple[Member, ...]:
    return tuple(Member(name) for name in names.split())


TAG_SPECIFICATIONS = Member(
    "TagSpecifications",
    "list",
    "TagSpecification",
    "tagSpecificationSet",
    members=(
        Member("ResourceType"),
        Member("Tags", "list", "Tag", "tagSet", members=_texts("Key Value")),
    ),
)

_VOLUME = _texts(
    "Encrypted DeleteOnTermination Iops KmsKeyId SnapshotId VolumeSize VolumeType Throughput VolumeInitializationRate "
    "EbsCardIndex"
)
_CARD = (
    *_texts(
        "AssociateCarrierIpAddress AssociatePublicIpAddress DeleteOnTermination Description DeviceIndex InterfaceType "
        "Ipv6AddressCount NetworkInterfaceId PrivateIpAddress SecondaryPrivateIpAddressCount SubnetId NetworkCardIndex "
        "Ipv4PrefixCount Ipv6PrefixCount PrimaryIpv6 EnaQueueCount"
    ),
    Member(
        "ConnectionTrackingSpecification",
        "structure",
        members=_texts("TcpEstablishedTimeout UdpStreamTimeout UdpTimeout"),
    ),
    Member(
        "EnaSrdSpecification",
        "structure",
        members=(
            Member("EnaSrdEnabled"),
            Member("EnaSrdUdpSpecification", "structure", members=_texts("EnaSrdUdpEnabled")),
        ),
    ),
    Member("Groups", "texts", "SecurityGroupId", "groupSet", "groupId"),
)
_SPOT = _texts("MaxPrice SpotInstanceType BlockDurationMinutes ValidUntil InstanceInterruptionBehavior")
_TARGET = _texts("CapacityReservationId CapacityReservationResourceGroupArn")

TEMPLATE_DATA: tuple[Member, ...] = (
    *_texts(
        "KernelId EbsOptimized ImageId InstanceType KeyName RamDiskId DisableApiTermination DisableApiStop "
        "InstanceInitiatedShutdownBehavior UserData"
    ),
    Member("IamInstanceProfile", "structure", members=_texts("Arn Name")),
    Member(
        "BlockDeviceMappings",
        "list",
        "BlockDeviceMapping",
        "blockDeviceMappingSet",
        members=(*_texts("DeviceName VirtualName NoDevice"), Member("Ebs", "structure", members=_VOLUME)),
    ),
    Member("NetworkInterfaces", "list", "NetworkInterface", "networkInterfaceSet", members=_CARD),
    Member("Monitoring", "structure", members=_texts("Enabled")),
    Member(
        "Placement",
        "structure",
        members=_texts(
            "AvailabilityZone AvailabilityZoneId Affinity GroupName HostId Tenancy SpreadDomain HostResourceGroupArn "
            "PartitionNumber GroupId"
        ),
    ),
    TAG_SPECIFICATIONS,
    Member("SecurityGroupIds", "texts", "SecurityGroupId", "securityGroupIdSet"),
    Member("SecurityGroups", "texts", "SecurityGroup", "securityGroupSet"),
    Member(
        "InstanceMarketOptions",
        "structure",
        members=(Member("MarketType"), Member("SpotOptions", "structure", members=_SPOT)),
    ),
    Member("CreditSpecification", "structure", members=_texts("CpuCredits")),
    Member("CpuOptions", "structure", members=_texts("CoreCount ThreadsPerCore AmdSevSnp NestedVirtualization")),
    Member(
        "CapacityReservationSpecification",
        "structure",
        members=(
            Member("CapacityReservationPreference"),
            Member("CapacityReservationTarget", "structure", members=_TARGET),
        ),
    ),
    Member("HibernationOptions", "structure", members=_texts("Configured")),
    Member(
        "MetadataOptions",
        "structure",
        members=_texts("HttpTokens HttpPutResponseHopLimit HttpEndpoint HttpProtocolIpv6 InstanceMetadataTags"),
    ),
    Member("EnclaveOptions", "structure", members=_texts("Enabled")),
    Member(
        "PrivateDnsNameOptions",
        "structure",
        members=_texts("HostnameType EnableResourceNameDnsARecord EnableResourceNameDnsAAAARecord"),
    ),
    Member(
        "LicenseSpecifications",
        "list",
        "LicenseSpecification",
        "licenseSet",
        members=_texts("LicenseConfigurationArn"),
    ),
    Member("NetworkPerformanceOptions", "structure", members=_texts("BandwidthWeighting")),
    Member("MaintenanceOptions", "structure", members=_texts("AutoRecovery")),
)
