"""The actions of EC2 that node groups need: launch templates, instance types, zones, reservations, instances.

In scope: converting parameters to the XML's content. Out of scope: the XML itself (`query`), templates' rules, the
network (`network`), placement groups (`placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.cards import network_info, storage_info
from gpukube_sandbox.eks.filters import filtered, page_of, read_tags, tag_set
from gpukube_sandbox.eks.instances import GPUS, TYPES, ZONES, InstanceType, zone_id
from gpukube_sandbox.eks.placement import requested_placement, strategies_of
from gpukube_sandbox.eks.regions import STANDARD
from gpukube_sandbox.eks.reservations import reservation_json
from gpukube_sandbox.eks.templatedata import TEMPLATE_DATA
from gpukube_sandbox.eks.wire.answers import AwsError, Json
from gpukube_sandbox.eks.wire.query import numbered, read_members, structures, when, xml_members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.templates import LaunchTemplate, TemplateVersion
    from gpukube_sandbox.eks.wire.identity import Caller

_MAX_TYPES = 100


def _create_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    data = read_members(params, "LaunchTemplateData.", TEMPLATE_DATA)
    tags = read_tags(params, "launch-template")
    store = service.templates(caller.account, caller.region)
    name, text = params.get("LaunchTemplateName", ""), params.get("VersionDescription", "")
    made = store.create(name, text, data, tags, params.get("ClientToken", ""))
    return {"launchTemplate": _template(made)}


def _create_version(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    data = read_members(params, "LaunchTemplateData.", TEMPLATE_DATA)
    source = params.get("SourceVersion", "")
    if source:
        data = {**_require_version(template, source).data, **data}
    made = store.add_version(template, params.get("VersionDescription", ""), data, params.get("ClientToken", ""))
    return {"launchTemplateVersion": _version(template, made)}


def _describe_templates(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    ids, names = numbered(params, "LaunchTemplateId"), numbered(params, "LaunchTemplateName")
    found = [store.require(identity, "") for identity in ids] + [store.require("", name) for name in names]
    if not ids and not names:
        found = sorted(store.templates.values(), key=lambda entry: entry.name)
    page, more = page_of(filtered(params, [_template(entry) for entry in found], _TEMPLATE_FILTERS), params, 200)
    return {"launchTemplates": {"item": list(page)}, "nextToken": more}


def _describe_versions(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    requested = numbered(params, "LaunchTemplateVersion")
    found = [_require_version(template, version) for version in requested] or list(reversed(template.versions))
    page, more = page_of(found, params, 200)
    return {"launchTemplateVersionSet": {"item": [_version(template, entry) for entry in page]}, "nextToken": more}


def _delete_versions(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Delete versions other than the default; report those that cannot be deleted next to those that were.

    Source:
        docs: API_DeleteLaunchTemplateVersions; botocore LaunchTemplateErrorCode. Messages unconfirmed.
    """
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    gone: list[Json] = []
    kept: list[Json] = []
    for requested in numbered(params, "LaunchTemplateVersion"):
        entry: Json = {"launchTemplateId": template.id, "launchTemplateName": template.name, "versionNumber": requested}
        found = template.find(requested)
        if found is not None and found.number != template.default:
            template.versions.remove(found)
            gone.append(entry)
            continue
        code = "launchTemplateVersionDoesNotExist" if found is None else "unexpectedError"
        text = "does not exist" if found is None else "is the default version and cannot be deleted"
        kept.append({**entry, "responseError": {"code": code, "message": f"Version {requested} {text}."}})
    return {
        "successfullyDeletedLaunchTemplateVersionSet": {"item": gone},
        "unsuccessfullyDeletedLaunchTemplateVersionSet": {"item": kept},
    }


def _delete_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    store.delete(template)
    return {"launchTemplate": _template(template)}


def _delete_tags(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Delete tags of launch templates: by key, by key and value if one is given; without keys, all tags."""
    store = service.templates(caller.account, caller.region)
    found = [store.require(identity, "") for identity in numbered(params, "ResourceId")]
    tags = [(params.get(f"{at}Key", ""), params.get(f"{at}Value")) for at in structures(params, "Tag")]
    for template in found:
        for key, value in tags or [(key, None) for key in [*template.tags]]:
            if value is None or template.tags.get(key) == value:
                template.tags.pop(key, None)
    return {"return": True}


def _modify_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    template.default = _require_version(template, params.get("SetDefaultVersion", "")).number
    return {"launchTemplate": _template(template)}


def _describe_keys(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known = sorted(service.known(caller.account, caller.region).keys)
    requested = numbered(params, "KeyName")
    unknown = [name for name in requested if name not in known]
    if unknown:  # awslabs/eks-perf-tests#473
        raise AwsError("InvalidKeyPair.NotFound", f"The key pair '{unknown[0]}' does not exist")
    keys: list[Json] = [{"keyName": name, "keyType": "rsa"} for name in requested or known]
    return {"keySet": {"item": filtered(params, keys, {"key-name": "keyName"})}}


def _describe_offerings(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service
    kind = params.get("LocationType", "region")
    if kind not in {"region", "availability-zone", "availability-zone-id"}:
        raise AwsError("InvalidParameterValue", f"Value ({kind}) for parameter locationType is invalid.")
    entries: list[Json] = []
    for entry in TYPES.values():
        by_kind = {
            "region": [caller.region],
            "availability-zone": [f"{caller.region}{letter}" for letter in entry.zones],
            "availability-zone-id": [zone_id(caller.region, letter) for letter in entry.zones],
        }
        places = by_kind[kind]
        entries += [{"instanceType": entry.name, "locationType": kind, "location": place} for place in places]
    known = {"instance-type": "instanceType", "location": "location"}
    page, more = page_of(filtered(params, entries, known), params, 1000)
    return {"instanceTypeOfferingSet": {"item": list(page)}, "nextToken": more}


def _describe_types(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service, caller
    requested = numbered(params, "InstanceType")
    if len(requested) > _MAX_TYPES:
        raise AwsError("InvalidParameterValue", f"At most {_MAX_TYPES} instance types can be named")
    unknown = [name for name in requested if name not in TYPES]
    if unknown:
        message = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        raise AwsError("InvalidInstanceType", message)
    found = filtered(params, [_type(TYPES[name]) for name in requested or TYPES], _TYPE_FILTERS)
    page, more = page_of(found, params, 100)
    return {"instanceTypeSet": {"item": list(page)}, "nextToken": more}


def _describe_zones(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service
    zones: list[Json] = [
        {
            "zoneName": f"{caller.region}{letter}",
            "zoneId": zone_id(caller.region, letter),
            "zoneState": "available",
            "regionName": caller.region,
            "zoneType": "availability-zone",
            "optInStatus": "opt-in-not-required",
        }
        for letter in ZONES
    ]
    named = numbered(params, "ZoneName")
    if unknown := [name for name in named if name not in {zone["zoneName"] for zone in zones}]:
        raise AwsError("InvalidParameterValue", f"Invalid availability zone: [{unknown[0]}]")  # message unconfirmed
    ids = numbered(params, "ZoneId")
    if unknown := [name for name in ids if name not in {zone["zoneId"] for zone in zones}]:
        raise AwsError("InvalidParameterValue", f"Invalid availability zone-id: [{unknown[0]}]")
    zones = [zone for zone in zones if not named or zone["zoneName"] in named]
    zones = [zone for zone in zones if not ids or zone["zoneId"] in ids]
    return {"availabilityZoneInfo": {"item": filtered(params, zones, _ZONE_FILTERS)}}


def _describe_regions(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return the regions of the standard partition; all of them are enabled."""
    del service, caller
    named = numbered(params, "RegionName")
    if unknown := [name for name in named if name not in STANDARD]:
        raise AwsError("InvalidParameterValue", f"Invalid region names: [{unknown[0]}]")  # message unconfirmed
    regions: list[Json] = [
        {"regionName": name, "regionEndpoint": f"ec2.{name}.amazonaws.com", "optInStatus": "opt-in-not-required"}
        for name in sorted(named or STANDARD)
    ]
    known = {"region-name": "regionName", "endpoint": "regionEndpoint", "opt-in-status": "optInStatus"}
    return {"regionInfo": {"item": filtered(params, regions, known)}}


def _describe_reservations(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known = service.known(caller.account, caller.region)
    now = service.clock.now()
    found = [reservation_json(caller, known, entry, service.stock, now) for entry in known.reservations.values()]
    ids = numbered(params, "CapacityReservationId")
    if unknown := [name for name in ids if name not in known.reservations]:
        message = f"The capacity reservation ID '{unknown[0]}' does not exist"
        raise AwsError("InvalidCapacityReservationId.NotFound", message)
    if ids:
        found = [entry for entry in found if entry["capacityReservationId"] in ids]
    page, more = page_of(filtered(params, found, _RESERVATION_FILTERS), params, 1000)
    return {"capacityReservationSet": {"item": list(page)}, "nextToken": more}


def _describe_instances(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return the machines of node groups; each reservation (of a launch) contains one."""
    found = [
        _instance(cluster, group, node)
        for cluster in service.in_region(caller.account, caller.region)
        for group in cluster.groups.values()
        for node in group.nodes
    ]
    requested = numbered(params, "InstanceId")
    for name in requested:
        if not name.startswith("i-"):  # the form is that of aws/aws-cdk#20800
            raise AwsError("InvalidInstanceID.Malformed", f'Invalid id: "{name}" (expecting "i-...")')
        if name not in {str(entry["instanceId"]) for entry in found}:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
    found = [entry for entry in found if not requested or entry["instanceId"] in requested]
    page, more = page_of(filtered(params, found, _INSTANCE_FILTERS), params, 1000)
    sets = [{"reservationId": f"r-{entry['instanceId']}", "instancesSet": {"item": [entry]}} for entry in page]
    return {"reservationSet": {"item": sets}, "nextToken": more}


def _instance(cluster: EksCluster, group: NodeGroup, node: str) -> Json:
    """Return a machine with the tags that users filter by; which other tags it has is unconfirmed."""
    machine, kind = group.instances[node], TYPES[group.instances[node].type]
    near = requested_placement(group.data, cluster.known)
    lifecycle = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(str(group.members["capacityType"]))
    tags = {
        "eks:cluster-name": cluster.name,
        "eks:nodegroup-name": group.name,
        f"kubernetes.io/cluster/{cluster.name}": "owned",
        "aws:autoscaling:groupName": group.asg,
    }
    return {
        "instanceId": machine.id,
        "instanceType": machine.type,
        "instanceState": {"code": 16, "name": "running"},
        "privateDnsName": node,
        "placement": {"availabilityZone": machine.zone, "groupName": near.name if near else None},
        "vpcId": cluster.vpc,
        "cpuOptions": {"coreCount": kind.vcpus, "threadsPerCore": 1},
        "instanceLifecycle": lifecycle,
        "tagSet": tag_set(tags),
    }


_TEMPLATE_FILTERS = {"launch-template-name": "launchTemplateName", "create-time": "createTime"}
_TYPE_FILTERS = {
    "instance-type": "instanceType", "bare-metal": "bareMetal", "current-generation": "currentGeneration",
    "free-tier-eligible": "freeTierEligible", "vcpu-info.default-vcpus": "vCpuInfo.defaultVCpus",
    "memory-info.size-in-mib": "memoryInfo.sizeInMiB", "network-info.efa-supported": "networkInfo.efaSupported",
    "network-info.efa-info.maximum-efa-interfaces": "networkInfo.efaInfo.maximumEfaInterfaces",
}  # fmt: skip
_ZONE_FILTERS = {
    "zone-name": "zoneName", "zone-id": "zoneId", "state": "zoneState", "region-name": "regionName",
    "zone-type": "zoneType", "opt-in-status": "optInStatus",
}  # fmt: skip
_RESERVATION_FILTERS = {
    "instance-type": "instanceType", "state": "state", "availability-zone": "availabilityZone", "owner-id": "ownerId",
    "instance-platform": "instancePlatform", "tenancy": "tenancy", "end-date-type": "endDateType",
    "instance-match-criteria": "instanceMatchCriteria", "start-date": "startDate", "end-date": "endDate",
    "placement-group-arn": "placementGroupArn",
}  # fmt: skip
_INSTANCE_FILTERS = {
    "instance-state-name": "instanceState.name", "instance-state-code": "instanceState.code", "vpc-id": "vpcId",
    "instance-type": "instanceType", "instance-lifecycle": "instanceLifecycle", "instance-id": "instanceId",
    "private-dns-name": "privateDnsName", "availability-zone": "placement.availabilityZone",
}  # fmt: skip


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "CreateLaunchTemplate": _create_template,
    "CreateLaunchTemplateVersion": _create_version,
    "DescribeLaunchTemplates": _describe_templates,
    "DescribeLaunchTemplateVersions": _describe_versions,
    "ModifyLaunchTemplate": _modify_template,
    "DeleteLaunchTemplate": _delete_template,
    "DeleteLaunchTemplateVersions": _delete_versions,
    "DeleteTags": _delete_tags,
    "DescribeKeyPairs": _describe_keys,
    "DescribeInstanceTypeOfferings": _describe_offerings,
    "DescribeInstanceTypes": _describe_types,
    "DescribeAvailabilityZones": _describe_zones,
    "DescribeRegions": _describe_regions,
    "DescribeCapacityReservations": _describe_reservations,
    "DescribeInstances": _describe_instances,
}


def _template(template: LaunchTemplate) -> Json:
    return {
        "launchTemplateId": template.id,
        "launchTemplateName": template.name,
        "createTime": when(template.created),
        "createdBy": template.created_by,
        "defaultVersionNumber": template.default,
        "latestVersionNumber": template.latest,
        "tagSet": tag_set(template.tags),
    }


def _version(template: LaunchTemplate, version: TemplateVersion) -> Json:
    return {
        "launchTemplateId": template.id,
        "launchTemplateName": template.name,
        "versionNumber": version.number,
        "versionDescription": version.description or None,
        "createTime": when(version.created),
        "createdBy": template.created_by,
        "defaultVersion": version.number == template.default,
        "launchTemplateData": xml_members(version.data, TEMPLATE_DATA),
    }


def _require_version(template: LaunchTemplate, requested: str) -> TemplateVersion:
    found = template.find(requested)
    if found is None:
        message = f"Could not find the specified version {requested} for the launch template with ID {template.id}."
        raise AwsError("InvalidLaunchTemplateId.VersionNotFound", message)
    return found


def _type(entry: InstanceType) -> Json:
    usage = ["on-demand", "spot", *(["capacity-block"] if entry.block else [])]
    found: Json = {
        "instanceType": entry.name,
        "currentGeneration": entry.family not in {"p3", "g5"},
        "freeTierEligible": False,
        "supportedUsageClasses": {"item": usage},
        "bareMetal": entry.name.endswith(".metal"),
        "processorInfo": {"supportedArchitectures": {"item": [entry.arch]}},
        "vCpuInfo": {"defaultVCpus": entry.vcpus},
        "memoryInfo": {"sizeInMiB": int(entry.memory_gib * 1024)},
        "networkInfo": network_info(entry),
        "placementGroupInfo": {"supportedStrategies": {"item": list(strategies_of(entry))}},
        **storage_info(entry),
    }
    if entry.gpu:
        found["gpuInfo"] = _gpus(entry)
    return found


def _gpus(entry: InstanceType) -> Json:
    """Return GpuInfo; a fraction has Count 0, LogicalGpuCount 1, and a size (aws/karpenter-provider-aws#8324)."""
    chip = GPUS[entry.gpu]
    mib = int(chip.mib * (entry.fraction or 1))
    gpu: Json = {
        "name": chip.name,
        "manufacturer": chip.manufacturer,
        "count": entry.gpus,
        "logicalGpuCount": entry.devices,
        "memoryInfo": {"sizeInMiB": mib},
    }
    if entry.fraction:
        gpu["gpuPartitionSize"] = entry.fraction
    return {"gpus": {"item": [gpu]}, "totalGpuMemoryInMiB": mib * entry.devices}
