"""Which Helm is used, and what it gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm import choice as helm_choice
from gpukube.cluster.helm.choice import choose_engine
from gpukube.cluster.helm.cli import HelmCli, cli_environ
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.servers import embedded_environ
from gpukube.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube.cluster.helm.engine import EngineChoice


def put_helm(directory: Path, message: str) -> dict[str, str]:
    program = directory / "helm"
    program.write_text(f"#!/bin/sh\n{message}\n")
    program.chmod(0o755)
    return {"PATH": str(directory)}


@pytest.mark.parametrize("version", ["v3.6.2", "v3.19.0+g1234", "v4.2.3"])
def test_choose_when_helm_is_on_path_then_that_one(tmp_path: Path, version: str) -> None:
    engine = choose_engine(put_helm(tmp_path, f"printf {version}"))
    assert isinstance(engine, HelmCli)
    assert engine.version() == f"helm {version} on PATH"


NOT_HELM = {
    "helm 2": "printf v2.17.0",
    "an editor": "printf 'helm for emacs'",
    "one that fails": "printf v3.6.2; exit 1",
}


@pytest.mark.parametrize("case", NOT_HELM)
def test_choose_when_something_else_has_the_name_then_the_embedded_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(helm_choice, "find_spec", lambda _name: object())
    assert isinstance(choose_engine(put_helm(tmp_path, NOT_HELM[case])), HelmSdk)


def test_choose_when_the_embedded_one_is_asked_for_then_path_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helm_choice, "find_spec", lambda _name: object())
    assert isinstance(choose_engine(put_helm(tmp_path, "printf v3.6.2"), "embedded"), HelmSdk)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Pretend to be another machine, whose extra `helm` brings nothing."""

    def pretend(name: str, system: str, processor: str) -> None:
        monkeypatch.setattr(helm_choice, "find_spec", lambda _name: None)
        monkeypatch.setattr("sys.platform", name)
        monkeypatch.setattr("platform.system", lambda: system)
        monkeypatch.setattr("platform.machine", lambda: processor)

    return pretend


ELSEWHERE = {
    "a Mac": (("darwin", "Darwin", "arm64"), "macOS on arm64", "newer: brew install helm, or https://helm.sh"),
    "an old Mac": (("darwin", "Darwin", "x86_64"), "macOS on x86_64", "newer: brew install helm, or https://helm.sh"),
    "Graviton": (("linux", "Linux", "aarch64"), "Linux on aarch64", "newer: https://helm.sh"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_choose_when_the_embedded_one_does_not_exist_there_then_only_the_command_is_named(
    name: str, tmp_path: Path, machine: Callable[[str, str, str], None]
) -> None:
    system, shown, fix = ELSEWHERE[name]
    machine(*system)
    with pytest.raises(MissingExtra) as caught:
        choose_engine({"PATH": str(tmp_path)})
    (found,) = caught.value.diagnostics
    assert found.why.endswith(f"; the embedded Helm exists for Linux on x86_64, this is {shown}")
    assert fix in found.fix
    assert "pip" not in found.fix


@pytest.mark.parametrize("name", ELSEWHERE)
def test_choose_when_helm_is_on_path_there_then_that_one(
    name: str, tmp_path: Path, machine: Callable[[str, str, str], None]
) -> None:
    machine(*ELSEWHERE[name][0])
    assert choose_engine(put_helm(tmp_path, "printf v3.19.0")).version() == "helm v3.19.0 on PATH"


@pytest.mark.parametrize("choice", ["auto", "embedded", "cli"])
def test_choose_when_there_is_none_then_both_ways_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: EngineChoice
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(helm_choice, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as caught:
        choose_engine({"PATH": str(tmp_path)}, choice)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "missing-helm"
    assert "pip install 'gpukube[helm]'" in diagnostic.fix
    assert "install helm 3.6 or newer" in diagnostic.fix


def test_choose_when_an_unfit_helm_is_on_path_then_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm_choice, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra) as caught:
        choose_engine(put_helm(tmp_path, "printf v2.17.0"))
    assert f"{tmp_path}/helm is not Helm 3 or 4" in caught.value.diagnostics[0].why


AMBIENT = {
    "PATH": "/bin",
    "HOME": "/home/u",
    "HTTPS_PROXY": "http://proxy",
    "KUBECONFIG": "/home/u/.kube/config",
    "HELM_KUBECONTEXT": "prod",
    "HELM_KUBETOKEN": "secret",
    "HELM_KUBEAPISERVER": "https://prod",
    "HELM_KUBECAFILE": "/ca",
    "HELM_KUBEASUSER": "root",
    "HELM_KUBEASGROUPS": "masters",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY": "true",
    "HELM_KUBETLS_SERVER_NAME": "prod",
    "HELM_NAMESPACE": "default",
    "HELM_DRIVER": "configmap",
    "HELM_DEBUG": "true",
    "HELM_PLUGINS": "/plugins",
    "HELM_REGISTRY_CONFIG": "/registry.json",
    "HELM_REPOSITORY_CONFIG": "/repositories.yaml",
}


def test_cli_environ_when_the_user_has_settings_then_theirs_stay_and_the_cluster_is_ours() -> None:
    kept = cli_environ(AMBIENT)
    assert set(kept) == {
        "PATH",
        "HOME",
        "HTTPS_PROXY",
        "HELM_PLUGINS",
        "HELM_REGISTRY_CONFIG",
        "HELM_REPOSITORY_CONFIG",
    }


def test_embedded_environ_when_the_user_has_settings_then_none_of_helm_is_seen() -> None:
    kept = embedded_environ(AMBIENT, "/tmp/x")  # noqa: S108 -- a name
    assert {name: value for name, value in kept.items() if name in AMBIENT} == {
        "PATH": "/bin",
        "HOME": "/home/u",
        "HTTPS_PROXY": "http://proxy",
    }
    assert kept["TMPDIR"] == "/tmp/x"  # noqa: S108 -- a name
    assert all(kept[f"HELM_{kind}_HOME"].startswith("/tmp/x/") for kind in ("CACHE", "CONFIG", "DATA"))  # noqa: S108
    assert {kept["GOGC"], kept["GOMEMLIMIT"]} == {"off", "256MiB"}
