"""The device plugin's configuration: file, environment, command line.

In scope: parsing them with the plugin's errors and precedence, and config-manager's choice of a config.
Out of scope: devices (`plugin`).

Source: NVIDIA/k8s-device-plugin v0.20.0 api/config/v1, cmd/config-manager; README "Configuration".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject

CONFIG_LABEL = "nvidia.com/device-plugin.config"
_PREFIX = "nvidia.com/"
_FEWEST_REPLICAS = 2
_LONGEST_NAME = 63


class Crash(Exception):
    """The process exits with an error; the message is its last log line."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How devices are shared.

    Attributes:
        strategy: Time-slicing or MPS.
        replicas: Resource name -> replicas.
        rename: The shared resource is named `<name>.shared`.
        single_only: The kubelet rejects pods that request more than one.
    """

    strategy: Literal["time-slicing", "mps"]
    replicas: Mapping[str, int]
    rename: bool = False
    single_only: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged configuration of a plugin or GFD process."""

    mig_strategy: str = "none"
    fail_on_init_error: bool = True
    sharing: Sharing | None = None
    warnings: tuple[str, ...] = field(default=())


def choose_config(label: str, keys: Collection[str], default: str, fallbacks: Sequence[str]) -> str | None:
    """Return the config key that config-manager chooses; None means to run without a config.

    Args:
        label: Value of the node's label; "" if it is not set.
        keys: Keys of the ConfigMap.
        default: DEFAULT_CONFIG.
        fallbacks: FALLBACK_STRATEGIES.

    Raises:
        Crash: The chosen key does not exist, or no key can be chosen.
    """
    if not keys:
        raise Crash("no configuration files available")
    chosen = label or default
    if chosen:
        if chosen not in keys:
            raise Crash(f"specified config {chosen} does not exist")
        return chosen
    for fallback in fallbacks:
        if fallback == "named" and "default" in keys:
            return "default"
        if fallback == "single" and len(keys) == 1:
            return next(iter(keys))
        if fallback == "empty":
            return None
        if fallback not in {"named", "single"}:
            raise Crash(f"unknown fallback strategy: {fallback}")
    raise Crash("no config was set, no default was provided, and all fallbacks failed")


def read_settings(text: str | None, env: Mapping[str, str], args: Sequence[str] = ()) -> Settings:
    """Merge the sources; the command line overrides the environment, which overrides the file.

    Args:
        text: Content of the config file, if any.
        env: Environment of the container.
        args: Command line after the program's name.

    Raises:
        Crash: The file cannot be parsed, or a value is not allowed.
    """
    try:
        loaded = yaml.safe_load(text) if text else {}
    except yaml.YAMLError as problem:
        raise Crash(f"unable to load config: unable to finalize config: error parsing config file: {problem}") from None
    content: JsonObject = loaded if isinstance(loaded, dict) else {}
    version = content.get("version") or "v1"
    if version != "v1":
        raise Crash(f"unable to load config: unable to parse config file: unknown version: {version}")
    flags: JsonObject = content.get("flags") or {}
    given = _arguments(args)

    def value(name: str, variable: str, otherwise: object) -> object:
        camel = name.split("-", maxsplit=1)[0] + "".join(part.capitalize() for part in name.split("-")[1:])
        return given.get(name, env.get(variable) or flags.get(camel, otherwise))

    strategy = str(value("mig-strategy", "MIG_STRATEGY", "none"))
    if strategy not in {"none", "single", "mixed"}:
        raise Crash(f"unable to validate flags: unknown MIG strategy: {strategy}")
    sharing, warnings = _sharing(content.get("sharing") or {})
    if content.get("resources"):
        warnings.append("Customizing the 'resources' field is not yet supported in the config. Ignoring...")
    if sharing and sharing.strategy == "mps" and strategy == "mixed":
        raise Crash("unable to validate flags: using --mig-strategy=mixed is not supported with MPS")
    fail = str(value("fail-on-init-error", "FAIL_ON_INIT_ERROR", otherwise=True)).lower() == "true"
    return Settings(strategy, fail, sharing, tuple(warnings))


def _arguments(args: Sequence[str]) -> dict[str, str]:
    found = {}
    for index, arg in enumerate(args):
        name, equals, text = arg.lstrip("-").partition("=")
        if arg.startswith("-"):
            following = args[index + 1] if index + 1 < len(args) and not args[index + 1].startswith("-") else "true"
            found[name] = text if equals else following
    return found


def _sharing(content: JsonObject) -> tuple[Sharing | None, list[str]]:
    warnings: list[str] = []
    read = {
        key: _replicated(content[key], key, warnings) for key in ("timeSlicing", "mps") if content.get(key) is not None
    }
    if not read:
        return None, warnings
    # If both are set, MPS takes precedence.
    return read.get("mps") or read["timeSlicing"], warnings


def _replicated(section: JsonObject, key: str, warnings: list[str]) -> Sharing:
    resources = section.get("resources")
    if not resources:
        raise _bad("no resources specified")
    replicas: dict[str, int] = {}
    for item in resources:
        name, count = _resource(item)
        replicas.setdefault(name, count)
        ignored = [field for field, plain in (("rename", None), ("devices", "all")) if item.get(field, plain) != plain]
        warnings += [
            f"Field '{name}' of sharing.{key}.resources is not yet supported in the config. Ignoring..."
            for name in ignored
        ]
    strategy: Literal["time-slicing", "mps"] = "mps" if key == "mps" else "time-slicing"
    one = section.get("failRequestsGreaterThanOne")
    return Sharing(
        strategy, replicas, bool(section.get("renameByDefault")), strategy == "mps" if one is None else bool(one)
    )


def _resource(item: JsonObject) -> tuple[str, int]:
    name = str(item.get("name") or "")
    if not name:
        raise _bad("no resource name specified")
    count = item.get("replicas")
    if count is None:
        raise _bad("no replicas specified")
    if not isinstance(count, int) or isinstance(count, bool):
        raise _bad(f"cannot unmarshal {count!r} into Go value of type int")
    if count < _FEWEST_REPLICAS:
        raise _bad("number of replicas must be >= 2")
    full = name if name.startswith(_PREFIX) else _PREFIX + name
    if len(full) > _LONGEST_NAME:
        raise _bad(f"fully-qualified resource name must be {_LONGEST_NAME} characters or less: {full}")
    return full, count


def _bad(what: str) -> Crash:
    return Crash(
        f"unable to load config: unable to parse config file: error parsing config file: unmarshal error: {what}"
    )
