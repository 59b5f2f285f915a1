"""Answers that are not the API's, of clouds and of Kubernetes: errors at their cluster, no defect, no false success.

One change and ten comparisons in every run; all with `pytest --full tests/cli/test_mangled_answers.py`. A failure names
its seed.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube_sandbox.environment import kubeconfig
from gpukube_sandbox.tls import make_tls
from tests.cli.harness import EXAMPLES
from tests.mangling import Mangler, mangling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube, Result

DIFFS, CHANGES = 1000, 200
CHUNK = 50
TURNS, PART = 9, 10
SHARE_OF_DIFF, SHARE_OF_CHANGE = 0.2, 0.03


class Mangled:
    """The command with a proxy in front of all that it asks."""

    def __init__(self, gpukube: Gpukube, mangler: Mangler, home: Path) -> None:
        self._gpukube, self._mangler = gpukube, mangler
        self._home = home
        self._contexts: dict[str, str] = {}
        spec = yaml.safe_load((EXAMPLES / "three-clouds.yaml").read_text())
        spec["pools"] = spec["pools"][1:]
        for name, nodes in (("before", 1), ("after", 2)):
            spec["pools"][0]["nodes"]["count"] = nodes
            (home / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        self.make()

    def make(self) -> None:
        """Create what is declared before, undisturbed."""
        made = self._gpukube("pool", "create", "-f", self._home / "before.yaml")
        assert made.code == 0, made.err

    def use(self, server: str, ca: str) -> None:
        """Have all clusters reached by one kubeconfig whose server is a proxy."""
        config: Any = kubeconfig(self._gpukube.info)["kubeconfig"]
        for cluster in config["clusters"]:
            old = cluster["cluster"]
            path = old["server"].split("/", 3)[3]
            old.update({"server": f"{server}/{path}", "certificate-authority": ca})
            old.pop("certificate-authority-data", None)
        (self._home / "kubeconfig").write_text(yaml.safe_dump(config))
        keys = {"arn:aws": "eks", "gke_": "gke"}
        names = [context["name"] for context in config["contexts"]]
        self._contexts = {
            next((key for sign, key in keys.items() if name.startswith(sign)), "aks"): name for name in names
        }

    def __call__(self, seed: int, share: float, *words: str) -> Result:
        """Run a command whose answers are mangled by a seed."""
        self._mangler.begin(seed, share)
        sets: list[str] = []
        for key in self._contexts if seed % 2 else ():  # else the clouds' own answers lead to the clusters, as they are
            sets += ["--set", f"clusters.train-{key}.kubeconfig={self._home / 'kubeconfig'}"]
            sets += ["--set", f"clusters.train-{key}.context={self._contexts[key]}"]
        return self._gpukube(*words, *sets)

    def spec(self, name: str) -> str:
        """Return the path of a spec: before or after."""
        return str(self._home / f"{name}.yaml")

    def undisturbed(self, *words: str) -> Result:
        """Run a command whose answers are as they are."""
        return self(0, 0.0, *words)


@pytest.fixture
def mangled(
    sandbox: SandboxInfo, gpukube: Gpukube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mangled]:
    """Three clouds with a pool each, and proxies in front of them and of their clusters."""
    mangler = Mangler()
    tls = make_tls(tmp_path)
    endpoints: dict[str, str] = {}
    with ExitStack() as proxies:
        for name, url in sandbox.endpoints.items():
            endpoints[name] = proxies.enter_context(mangling(mangler, url))
        monkeypatch.setattr(type(sandbox), "endpoints", endpoints)  # --sandbox leads to the proxies
        made = Mangled(gpukube, mangler, tmp_path)
        server = mangling(mangler, sandbox.kube_url, ca=Path(sandbox.ca_path), tls=tls)
        made.use(proxies.enter_context(server), str(tls.ca))
        yield made


def complaint(seed: int, ended: Result, codes: tuple[int, ...]) -> str:
    """Describe what is wrong with an ending, or nothing."""
    if ended.code in codes and "Traceback" not in ended.err and "error[defect" not in ended.err + ended.out:
        return ""
    return f"{seed}: ended with {ended.code}: {ended.err[-700:]}"


def diffs(mangled: Mangled, seeds: range) -> list[str]:
    """Compare with mangled answers; what is the same without may be different, unknown or an error, never a defect."""
    codes = (0, 1, 2, 3, 5)
    return [
        said
        for seed in seeds
        if (
            said := complaint(
                seed, mangled(seed, SHARE_OF_DIFF, "pool", "plan", "diff", "-f", mangled.spec("before")), codes
            )
        )
    ]


def changes(mangled: Mangled, seeds: range) -> list[str]:
    """Change with mangled answers: success is said only where the spec is so, and the next run gets there."""
    found = []
    for seed in seeds:
        spec = mangled.spec("after" if seed // 2 % 2 else "before")
        if seed % 4 < 2:
            mangled.undisturbed("pool", "delete", "t4slices", "--yes", "-f", spec)
        words = ("create", "-f", spec) if seed % 4 < 2 else ("apply", "--yes", "-f", spec)
        ended = mangled(seed, SHARE_OF_CHANGE, "pool", *words)
        found.append(complaint(seed, ended, (0, 1, 3, 5, 6, 7)))
        if ended.code == 0:
            same = mangled.undisturbed("pool", "plan", "diff", "-f", spec)
            found.append(f"{seed}: false success: {same.out} {same.err}" if same.code else "")
        else:
            again = mangled.undisturbed("pool", "apply", "--yes", "-f", spec)
            found.append(f"{seed}: not taken up: {again.err[:600]}" if again.code else "")
    return [said for said in found if said]


@pytest.mark.turns(TURNS)
@pytest.mark.parametrize("turn", range(TURNS))
def test_answers_when_mangled_then_no_defect_and_no_false_success(mangled: Mangled, turn: int) -> None:
    compared = range(PART * turn, PART * (turn + 1))
    assert [*changes(mangled, range(turn, turn + 1)), *diffs(mangled, compared)] == []


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("begin", range(0, DIFFS, CHUNK))
def test_diff_when_any_answer_is_mangled_then_no_defect(mangled: Mangled, begin: int) -> None:
    assert diffs(mangled, range(begin, begin + CHUNK)) == []


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("begin", range(0, CHANGES, CHUNK))
def test_change_when_any_answer_is_mangled_then_no_defect_and_no_false_success(mangled: Mangled, begin: int) -> None:
    assert changes(mangled, range(begin, begin + CHUNK)) == []
