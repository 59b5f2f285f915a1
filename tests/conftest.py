"""What tests of gpukube have besides sandbox_tests.plugin: a shared Helm, and a look at the permissions they use."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
from httpx2 import _urlparse, _urls

from gpukube.cluster.helm import servers
from gpukube.cluster.process.scratch import Scratch
from gpukube_sandbox import daemon
from tests.permissions.collecting import Collecting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.process.scratch import Kind
    from gpukube_sandbox.daemon import SandboxInfo

_urlparse.urlparse = _urls.urlparse = lru_cache(4096)(_urlparse.urlparse)  # type: ignore[attr-defined]
"""An address is parsed once: each request to a cluster parses three, letter by letter, a tenth of a command's time."""


def pytest_configure(config: pytest.Config) -> None:
    """Gather the permissions that all tests use."""
    config.pluginmanager.register(Collecting(config), "permissions")


@pytest.fixture(scope="session", autouse=True)
def shared_helm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the runs of this process share the processes of the embedded Helm, each of which takes 0.15 s to start.

    Each test has another home and other variables; Helm gets one home for all, and its own directory outlives the test.
    """
    directory = tmp_path_factory.mktemp("helm")
    of_product = servers.embedded_environ

    def one_for_all(environ: Mapping[str, str], own: str) -> dict[str, str]:
        seen = {name: value for name, value in environ.items() if name == "PATH" or name.lower().endswith("_proxy")}
        return of_product({**seen, "HOME": str(directory)}, own)

    class Lasting(Scratch):
        def __init__(self, kind: Kind) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(tempfile, "tempdir", str(directory))
                super().__init__(kind)

    with pytest.MonkeyPatch.context() as patch, servers.kept():
        patch.setattr(servers, "embedded_environ", one_for_all)
        patch.setattr(servers, "Scratch", Lasting)
        yield


@pytest.fixture(scope="session")
def running_sandbox(running_sandbox: SandboxInfo, request: pytest.FixtureRequest) -> Iterator[SandboxInfo]:
    """Note which permissions gpukube used in the sandbox of this worker."""
    collecting: Collecting = request.config.pluginmanager.getplugin("permissions")
    collecting.note(running_sandbox)
    yield running_sandbox
    collecting.note(running_sandbox, daemon.used_permissions(running_sandbox))
