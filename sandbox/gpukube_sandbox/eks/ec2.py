"""The actions of EC2 that node groups need: launch templates, subnets, instance types, zones.

Lives here: from parameters to the XML's content. Must not live here: the XML itself (`query`), templates' rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gpukube_sandbox.eks.instances import GPUS, TYPES, ZONES, InstanceType
from gpukube_sandbox.eks.reservations import reservation_json
from gpukube_sandbox.eks.templatedata import TAG_SPECIFICATIONS, TEMPLATE_DATA
from gpukube_sandbox.eks.wire.answers import Json, Refusal, objects_in
from gpukube_sandbox.eks.wire.query import numbered, read_members, structures, when, xml_members
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube_sandbox.eks.clusters import EksCluster, Subnet
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.templates import LaunchTemplate, TemplateVersion
    from gpukube_sandbox.eks.wire.identity import Caller

_MOST_NAMED = 100
_T = TypeVar("_T")


def _create_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    data = read_members(params, "LaunchTemplateData.", TEMPLATE_DATA)
    tags = _tags(params, "launch-template")
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
    for name, values in _filters(params):
        found = [entry for entry in found if _template_fits(entry, name, values)]
    page, more = _page(found, params, 200)
    return {"launchTemplates": {"item": [_template(entry) for entry in page]}, "nextToken": more}


def _describe_versions(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    asked = numbered(params, "LaunchTemplateVersion")
    found = [_require_version(template, version) for version in asked] or list(reversed(template.versions))
    page, more = _page(found, params, 200)
    return {"launchTemplateVersionSet": {"item": [_version(template, entry) for entry in page]}, "nextToken": more}


def _delete_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    store.delete(template)
    return {"launchTemplate": _template(template)}


def _delete_tags(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Delete tags of launch templates: by key, and of a value where one is given; without any, all of them."""
    store = service.templates(caller.account, caller.region)
    found = [store.require(identity, "") for identity in numbered(params, "ResourceId")]
    wanted = [(params.get(f"{at}Key", ""), params.get(f"{at}Value")) for at in structures(params, "Tag")]
    for template in found:
        for key, value in wanted or [(key, None) for key in [*template.tags]]:
            if value is None or template.tags.get(key) == value:
                template.tags.pop(key, None)
    return {"return": True}


def _modify_template(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    store = service.templates(caller.account, caller.region)
    template = store.require(params.get("LaunchTemplateId", ""), params.get("LaunchTemplateName", ""))
    template.default = _require_version(template, params.get("SetDefaultVersion", "")).number
    return {"launchTemplate": _template(template)}


def _describe_subnets(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    clusters = service.in_region(caller.account, caller.region)
    found = [_subnet(cluster, subnet) for cluster in clusters for subnet in cluster.subnets]
    ids = numbered(params, "SubnetId")
    known = {str(entry["subnetId"]) for entry in found}
    unknown = [name for name in ids if name not in known]
    if unknown:
        raise Refusal("InvalidSubnetID.NotFound", f"The subnet ID '{unknown[0]}' does not exist")
    if ids:
        found = [entry for entry in found if entry["subnetId"] in ids]
    for name, values in _filters(params):
        found = [entry for entry in found if _subnet_fits(entry, name, values)]
    page, more = _page(found, params, 1000)
    return {"subnetSet": {"item": list(page)}, "nextToken": more}


def _describe_keys(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known = sorted(service.known(caller.account, caller.region).keys)
    asked = numbered(params, "KeyName")
    unknown = [name for name in asked if name not in known]
    if unknown:  # awslabs/eks-perf-tests#473
        raise Refusal("InvalidKeyPair.NotFound", f"The key pair '{unknown[0]}' does not exist")
    for name, _ in _filters(params):
        raise _no_filter(name)
    return {"keySet": {"item": [{"keyName": name, "keyType": "rsa"} for name in asked or known]}}


def _describe_offerings(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service
    kind = params.get("LocationType", "region")
    if kind not in {"region", "availability-zone"}:
        raise Refusal("InvalidParameterValue", f"Value ({kind}) for parameter locationType is invalid.")
    entries: list[Json] = []
    for entry in TYPES.values():
        zones = [f"{caller.region}{letter}" for letter in entry.zones]
        places = zones if kind == "availability-zone" else [caller.region]
        entries += [{"instanceType": entry.name, "locationType": kind, "location": place} for place in places]
    for name, values in _filters(params):
        key = {"instance-type": "instanceType", "location": "location"}.get(name)
        if key is None:
            raise _no_filter(name)
        entries = [entry for entry in entries if _matches(str(entry[key]), values)]
    page, more = _page(entries, params, 1000)
    return {"instanceTypeOfferingSet": {"item": list(page)}, "nextToken": more}


def _describe_types(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service, caller
    asked = numbered(params, "InstanceType")
    if len(asked) > _MOST_NAMED:
        raise Refusal("InvalidParameterValue", f"At most {_MOST_NAMED} instance types can be named")
    unknown = [name for name in asked if name not in TYPES]
    if unknown:
        message = f"The following supplied instance types do not exist: [{', '.join(unknown)}]"
        raise Refusal("InvalidInstanceType", message)
    found = [TYPES[name] for name in asked or TYPES]
    for name, values in _filters(params):
        if name != "instance-type":
            raise _no_filter(name)
        found = [entry for entry in found if _matches(entry.name, values)]
    page, more = _page(found, params, 100)
    return {"instanceTypeSet": {"item": [_type(entry) for entry in page]}, "nextToken": more}


def _describe_zones(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service, params
    zones: list[Json] = [
        {
            "zoneName": f"{caller.region}{letter}",
            "zoneId": f"{caller.region}-az{at}",
            "zoneState": "available",
            "regionName": caller.region,
            "zoneType": "availability-zone",
            "optInStatus": "opt-in-not-required",
        }
        for at, letter in enumerate(ZONES, 1)
    ]
    return {"availabilityZoneInfo": {"item": zones}}


def _describe_reservations(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known = service.known(caller.account, caller.region)
    found = [reservation_json(caller.account, caller.region, known, entry) for entry in known.reservations.values()]
    ids = numbered(params, "CapacityReservationId")
    if unknown := [name for name in ids if name not in known.reservations]:
        message = f"The capacity reservation ID '{unknown[0]}' does not exist"
        raise Refusal("InvalidCapacityReservationId.NotFound", message)
    if ids:
        found = [entry for entry in found if entry["capacityReservationId"] in ids]
    page, more = _page(found, params, 1000)
    return {"capacityReservationSet": {"item": list(page)}, "nextToken": more}


def _describe_instances(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """The machines of node groups; reservations (of a launch) have one machine each."""
    found = [
        _instance(group, node)
        for cluster in service.in_region(caller.account, caller.region)
        for group in cluster.groups.values()
        for node in group.nodes
    ]
    for name, values in _filters(params):
        if name not in _INSTANCE_FILTERS:
            raise _no_filter(name)
        found = [entry for entry in found if _matches(_INSTANCE_FILTERS[name](entry), values)]
    page, more = _page(found, params, 1000)
    sets = [{"reservationId": f"r-{entry['instanceId']}", "instancesSet": {"item": [entry]}} for entry in page]
    return {"reservationSet": {"item": sets}, "nextToken": more}


def _instance(group: NodeGroup, node: str) -> Json:
    machine, kind = group.instances[node], TYPES[group.instances[node].type]
    lifecycle = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(str(group.members["capacityType"]))
    return {
        "instanceId": machine.id,
        "instanceType": machine.type,
        "instanceState": {"code": 16, "name": "running"},
        "privateDnsName": node,
        "placement": {"availabilityZone": machine.zone},
        "cpuOptions": {"coreCount": kind.vcpus, "threadsPerCore": 1},
        "instanceLifecycle": lifecycle,
    }


_INSTANCE_FILTERS: dict[str, Callable[[Json], str]] = {
    "instance-state-name": lambda _: "running",
    "instance-type": lambda entry: str(entry["instanceType"]),
    "instance-lifecycle": lambda entry: str(entry["instanceLifecycle"]),
}


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "CreateLaunchTemplate": _create_template,
    "CreateLaunchTemplateVersion": _create_version,
    "DescribeLaunchTemplates": _describe_templates,
    "DescribeLaunchTemplateVersions": _describe_versions,
    "ModifyLaunchTemplate": _modify_template,
    "DeleteLaunchTemplate": _delete_template,
    "DeleteTags": _delete_tags,
    "DescribeSubnets": _describe_subnets,
    "DescribeKeyPairs": _describe_keys,
    "DescribeInstanceTypeOfferings": _describe_offerings,
    "DescribeInstanceTypes": _describe_types,
    "DescribeAvailabilityZones": _describe_zones,
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
        "tagSet": _tag_set(template.tags),
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


def _require_version(template: LaunchTemplate, asked: str) -> TemplateVersion:
    found = template.find(asked)
    if found is None:
        message = f"Could not find the specified version {asked} for the launch template with ID {template.id}."
        raise Refusal("InvalidLaunchTemplateId.VersionNotFound", message)
    return found


def _template_fits(template: LaunchTemplate, name: str, values: Sequence[str]) -> bool:
    if name == "launch-template-name":
        return _matches(template.name, values)
    if name.startswith("tag:"):
        return _matches(template.tags.get(name.removeprefix("tag:")), values)
    if name == "tag-key":
        return any(_matches(key, values) for key in template.tags)
    raise _no_filter(name)


def _subnet(cluster: EksCluster, subnet: Subnet) -> Json:
    role = "kubernetes.io/role/elb" if subnet.public else "kubernetes.io/role/internal-elb"
    kind = "public" if subnet.public else "private"
    tags = {"Name": f"{cluster.name}-{kind}-{subnet.zone}", role: "1"}
    return {
        "subnetId": subnet.id,
        "subnetArn": f"arn:aws:ec2:{cluster.region}:{cluster.account}:subnet/{subnet.id}",
        "state": "available",
        "vpcId": cluster.vpc,
        "ownerId": cluster.account,
        "cidrBlock": subnet.cidr,
        "availableIpAddressCount": subnet.free,
        "availabilityZone": f"{cluster.region}{subnet.zone}",
        "availabilityZoneId": f"{cluster.region}-az{ZONES.index(subnet.zone) + 1 if subnet.zone in ZONES else 9}",
        "defaultForAz": False,
        "mapPublicIpOnLaunch": subnet.public,
        "assignIpv6AddressOnCreation": False,
        "tagSet": _tag_set(tags),
    }


_SUBNET_FILTERS = {
    "vpc-id": "vpcId",
    "subnet-id": "subnetId",
    "availability-zone": "availabilityZone",
    "map-public-ip-on-launch": "mapPublicIpOnLaunch",
}


def _subnet_fits(subnet: Json, name: str, values: Sequence[str]) -> bool:
    if name.startswith("tag:"):
        tags = subnet["tagSet"]
        entries = objects_in(tags.get("item")) if isinstance(tags, dict) else []
        return any(tag["key"] == name.removeprefix("tag:") and _matches(str(tag["value"]), values) for tag in entries)
    if name not in _SUBNET_FILTERS:
        raise _no_filter(name)
    return _matches(str(subnet[_SUBNET_FILTERS[name]]).removeprefix(" "), [*values, *(v.title() for v in values)])


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
        "networkInfo": {"efaSupported": entry.efa > 0, "efaInfo": {"maximumEfaInterfaces": entry.efa}},
    }
    if not entry.efa:
        found["networkInfo"] = {"efaSupported": False}
    if entry.gpu:
        found["gpuInfo"] = _gpus(entry)
    return found


def _gpus(entry: InstanceType) -> Json:
    """A fraction has Count 0, LogicalGpuCount 1 and a partition size (aws/karpenter-provider-aws#8324)."""
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


def _tags(params: Mapping[str, str], kind: str) -> dict[str, str]:
    """Tags of the resource itself, from TagSpecification; another resource type is refused."""
    found: dict[str, str] = {}
    for prefix in structures(params, "TagSpecification"):
        specification = read_members(params, prefix, TAG_SPECIFICATIONS.members)
        if specification.get("ResourceType") != kind:
            message = f"'{specification.get('ResourceType')}' is not a valid taggable resource type for this operation."
            raise Refusal("InvalidParameterValue", message)
        found |= {str(tag["Key"]): str(tag.get("Value", "")) for tag in objects_in(specification.get("Tags"))}
    return found


def _tag_set(tags: Mapping[str, str]) -> Json | None:
    return {"item": [{"key": key, "value": value} for key, value in tags.items()]} if tags else None


def _filters(params: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    return [(params.get(f"{at}Name", ""), numbered(params, f"{at}Value")) for at in structures(params, "Filter")]


def _matches(value: str | None, patterns: Sequence[str]) -> bool:
    """Whether any pattern fits; * stands for any text."""
    if value is None:
        return False
    return any(value == one or ("*" in one and value.startswith(one.partition("*")[0])) for one in patterns)


def _no_filter(name: str) -> Refusal:
    return Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")


def _page(found: Sequence[_T], params: Mapping[str, str], usual: int) -> tuple[Sequence[_T], str | None]:
    """One page of results and the token of the next."""
    asked = params.get("MaxResults", "")
    if asked and (not asked.isdigit() or int(asked) < 1):
        raise Refusal("InvalidParameterValue", f"Value ({asked}) for parameter maxResults is invalid.")
    try:
        page, following = cut(params.get("Action", ""), found, params.get("NextToken", ""), int(asked or usual))
    except WrongToken as error:
        raise Refusal("InvalidNextToken", "The token is not valid.") from error
    return page, following or None
