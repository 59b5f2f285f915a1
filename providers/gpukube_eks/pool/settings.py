"""Settings of a pool's nodes in the launch template's user data: new, changed, and carried to a replacement.

In scope: which settings a pool has, and errors about user data of others. Out of scope: the form of user data
(`userdata`), the launch template that contains it (`template`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, PLUGIN, FieldPath, hugepages, kubelet, sysctl
from gpukube.core.jsontree import text, tree
from gpukube.errors import SpecError
from gpukube_eks.facts.images import CUSTOM, is_bottlerocket
from gpukube_eks.userdata.encoding import MOST_BYTES, size
from gpukube_eks.userdata.merging import (
    Ours,
    UnmergeableError,
    has_others,
    is_setting,
    merged_data,
    new_data,
    own_fields,
    require_settings,
    without_settings,
)
from gpukube_eks.userdata.summary import describe_others, scripts_of_others

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.values import Desired, Observed, Target

IMAGE_ID: Final = "imageId"
"""Native member that names an image of the user's own."""
NAMES: Final = "gpukube/"
"""How the names of gpukube's launch templates begin."""
TEMPLATE_DATA: Final = "launchTemplateData"
"""Member of an observed group, in addition to EKS's own: the data of its template's version."""
_LARGE: Final = 12 * 1024
"""Size from which EKS's own part may not fit: it grows with the labels and taints of the group."""


def node_settings(target: Target) -> dict[FieldPath, object]:
    """Return the declared settings; disks that are left to pods are the default, which no setting says."""
    found: dict[FieldPath, object] = {MAX_PODS: target.max_pods} if target.max_pods is not None else {}
    found |= {kubelet(name): _plain(value) for name, value in target.kubelet.items()}
    found |= {sysctl(name): value for name, value in target.sysctls.items()}
    found |= {hugepages(size): pages for size, pages in target.hugepages.items()}
    found |= {LOCAL_STORAGE: "ephemeral"} if target.local_storage == "ephemeral" else {}
    off = target.image == "bottlerocket" and target.plugin_owner == "dra"
    return found | ({PLUGIN: "none"} if off else {})


def user_data(target: Target, *, rocket: bool) -> str:
    """Return user data of a new group, in base64; "" for none."""
    return new_data(_ours(target, node_settings(target)), rocket=rocket)


def changed_user_data(target: Target, observed: Observed, live: str, changed: Collection[FieldPath]) -> str:
    """Return user data of a live group with changed settings; gpukube's other ones and everything of others stay.

    Args:
        target: What is declared.
        observed: The live group.
        live: Its user data; "" for none.
        changed: The changed fields.

    Raises:
        SpecError: The user data of others does not allow it.
    """
    rocket, field = _is_rocket(observed), min(changed, key=str)
    if observed.native.get("amiType") == CUSTOM:
        error = UnmergeableError(
            "the launch template names an image, whose user data gpukube does not change",
            fix="change it in the user data of a new version of the launch template",
            why="EKS merges no user data then: it contains everything that the image needs to join the cluster",
        )
        raise _refused(target, error, field)
    try:
        # What the spec no longer has is removed, except the maximum pods: see own_settings.
        removed = {*changed} - {MAX_PODS}
        kept = {path: value for path, value in own_fields(live, rocket=rocket).items() if path not in removed}
        settings = {**kept, **node_settings(target)}
        merged = merged_data(live, _ours(target, settings), rocket=rocket) or without_settings(rocket=rocket)
        require_settings(merged, settings, [path for path in changed if is_setting(path)], rocket=rocket)
    except UnmergeableError as error:
        raise _refused(target, error, field) from error
    return merged


def has_carried(desired: Desired, observed: Observed) -> bool:
    """Return whether a pool's creation has user data of others that a live group has."""
    live = text(observed.native, TEMPLATE_DATA, "UserData")
    made = text(desired.create.params, "launchTemplate", "LaunchTemplateData", "UserData")
    rocket = is_bottlerocket(text(desired.create.params, "nodegroup", "amiType"))
    return bool(live and made) and has_others(live, rocket=rocket) and has_others(made, rocket=rocket)


def carried(desired: Desired, observed: Observed) -> Desired:
    """Return a pool whose creation has the user data of others that the live group has.

    Raises:
        SpecError: The new pool cannot have it.
    """
    target, params = desired.target, desired.create.params
    live = text(observed.native, TEMPLATE_DATA, "UserData")
    rocket = is_bottlerocket(text(params, "nodegroup", "amiType"))
    if not live or not has_others(live, rocket=rocket) or not can_carry(desired, observed):
        return desired
    try:
        ours = _ours(target, node_settings(target))
        # Anything may start the nodes of an own image; only settings require that it is MIME.
        verbatim = IMAGE_ID in target.native and not ours.settings
        merged = live if verbatim else merged_data(live, ours, rocket=rocket)
    except UnmergeableError as error:
        raise _refused(target, error) from error
    template = tree(params, "launchTemplate")
    data = {**tree(template, "LaunchTemplateData"), "UserData": merged}
    create = replace(desired.create, params={**params, "launchTemplate": {**template, "LaunchTemplateData": data}})
    return replace(desired, create=create)


def can_carry(desired: Desired, observed: Observed) -> bool:
    """Return whether a new pool's nodes can read the user data of the live ones: MIME parts, TOML, or of an own image.

    A launch template without its group has no image: it was made for the same pool.
    """
    new, old = text(desired.create.params, "nodegroup", "amiType"), text(observed.native, "amiType")
    if not old:
        return True
    if IMAGE_ID in desired.target.native or old == CUSTOM:
        return IMAGE_ID in desired.target.native and old == CUSTOM
    return is_bottlerocket(new) == is_bottlerocket(old)


def own_settings(group: Mapping[str, object], data: Mapping[str, object]) -> frozenset[FieldPath]:
    """Return the settings that gpukube wrote, and removes once the spec has them no longer.

    The maximum pods stay: a spec without them has always meant that they are not managed. In a launch template of
    others, a document of Bottlerocket's that has gpukube's form may still be theirs.
    """
    rocket = is_bottlerocket(text(group, "amiType"))
    is_certain = not rocket or text(group, "launchTemplate", "name").startswith(NAMES)
    found = own_fields(text(data, "UserData"), rocket=rocket, unmarked=is_certain)
    return frozenset(found.keys() - {MAX_PODS})


def others_of(observed: Observed) -> tuple[str, ...]:
    """Return what a group's user data has from others, without anything that may be secret."""
    return describe_others(text(observed.native, TEMPLATE_DATA, "UserData"), rocket=_is_rocket(observed))


def describe_kept(observed: Observed) -> str:
    """Return a clause about user data of others that a change keeps; "" for none."""
    kept = others_of(observed)
    if not kept:
        return ""
    live = text(observed.native, TEMPLATE_DATA, "UserData")
    clauses = [f"user data of others stays: {', '.join(kept)}"]
    if not _is_rocket(observed) and (scripts := scripts_of_others(live)):
        clauses.append(f"{', '.join(scripts)} may change what is written here")
    if (bytes_ := size(live)) > _LARGE:
        clauses.append(f"it has {bytes_} bytes, and EKS adds its own part: more than {MOST_BYTES} are refused")
    return "; ".join(clauses)


def _is_rocket(observed: Observed) -> bool:
    return is_bottlerocket(text(observed.native, "amiType"))


def _ours(target: Target, settings: dict[FieldPath, object]) -> Ours:
    return Ours(settings, target.machine.model, target.sharing)


def _plain(value: object) -> object:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else value


def _refused(target: Target, error: UnmergeableError, field: FieldPath | None = None) -> SpecError:
    return SpecError(
        f"{target.where}: {error.seen}",
        where=target.locator.at(".".join(field)) if field else target.where,
        fix=error.fix,
        why=error.why,
        code="user-data",
    )
