"""Loads installed providers and the sandbox on demand; errors name what to install.

`gpukube.provider` defines what a provider is. The layers below it get their part of a provider from here: the spec its
models, the GPU package its machines.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpukube import __version__
from gpukube.entry_points import installed_points, make_provider, provider_names
from gpukube.errors import MissingExtra

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SANDBOX_GROUP: Final = "gpukube.sandbox"
SANDBOX_PROTOCOL: Final = 1
"""The sandbox protocol that this gpukube supports (`PROTOCOL` in gpukube_sandbox.door)."""
_UVX_CACHE: Final = "archive-v0"
"""Directory of uvx's environments, below `uv cache dir`."""


def load_installed(name: str) -> object:
    """Load one provider by its name in the spec.

    Raises:
        MissingExtra: No installed package provides it (the error lists the installed ones), or its package cannot be
            loaded.
    """
    if name in provider_names():
        try:
            made: object = make_provider(name)
        except (ImportError, AttributeError, TypeError) as error:
            raise unusable(name, f"cannot be loaded: {error}") from error
        return made
    known = ", ".join(provider_names()) or "none"
    raise MissingExtra(
        f'no provider for "{name}" is installed',
        where=name,
        fix=f"use one of the installed providers ({known}), or install the package that provides {name}",
        code="no-provider",
    )


def member_of(name: str, member: str) -> object:
    """Return a member of an installed provider.

    Raises:
        MissingExtra: The provider cannot be loaded, or has no such member because it was made for another gpukube.
    """
    provider = load_installed(name)
    try:
        return getattr(provider, member)
    except AttributeError as error:
        raise unusable(name, f"cannot be used: {error}") from error


def load_sandbox() -> Any:  # noqa: ANN401 - a module of a package that gpukube does not know
    """Load the sandbox's entry module.

    Raises:
        MissingExtra: gpukube-sandbox is not installed, cannot be loaded, or belongs to another gpukube version.
    """
    point = next(iter(installed_points(SANDBOX_GROUP)), None)
    if point is None:
        message = "the sandbox is not installed; it is a package of its own, gpukube-sandbox"
        raise MissingExtra(
            message, where="sandbox", fix=f"{install_command('sandbox')}; in a clone: pip install ./sandbox"
        )
    fix = f"pip install 'gpukube-sandbox=={__version__}'; in a clone: pip install ./sandbox"
    try:
        door: Any = point.load()
    except ImportError as error:
        raise MissingExtra(f"gpukube-sandbox cannot be loaded: {error}", where="sandbox", fix=fix) from error
    protocol, version = getattr(door, "PROTOCOL", None), getattr(door, "VERSION", "before 0.1")
    if (protocol, version) != (SANDBOX_PROTOCOL, __version__):
        needed = f"this is gpukube {__version__} (protocol {SANDBOX_PROTOCOL})"
        message = f"gpukube-sandbox is {version} (protocol {protocol}), and {needed}"
        raise MissingExtra(message, where="sandbox", fix=fix, code="sandbox-version")
    return door


def install_command(extra: str) -> str:
    """Return the command that installs an extra into the environment of this gpukube.

    If pipx or uv created the environment, pip in the user's shell would install elsewhere. These tools recreate the
    environment, so their command names all extras; naming one would drop the others. `all` excludes the sandbox.
    """
    prefix = Path(sys.prefix)
    extras = "all,sandbox" if extra == "sandbox" or installed_points(SANDBOX_GROUP) else "all"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx install --force 'gpukube[{extras}]'"
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install --force 'gpukube[{extras}]'"
    if _UVX_CACHE in prefix.parts:
        return f"uvx --from 'gpukube[{extras}]' gpukube ..."
    return f"pip install 'gpukube[{extra}]'"


def unusable(name: str, why: str) -> MissingExtra:
    """Return the error for a provider that is installed but incompatible."""
    package = next((_package(point) for point in installed_points().select(name=name)), "its package")
    return MissingExtra(
        f'the provider "{name}" of {package} {why}',
        where=name,
        fix=f"install a version of {package} that supports this gpukube, or remove it",
    )


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
