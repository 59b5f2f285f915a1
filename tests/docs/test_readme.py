"""Every block of the README does what it says; the pages made from code are up to date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import ExitCode
from sandbox_tests.sandboxes import emptied
from tools.readme_line import readme_line
from tools.spec_docs import PAGE, spec_page

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent


SPEED = 2000.0


@pytest.fixture
def shell(tmp_path: Path, running_sandbox: SandboxInfo) -> dict[str, str]:
    """Return the environment of a newcomer: this interpreter's gpukube first, pip and az as stubs that do nothing.

    The sandbox is empty, whatever test ran in it before.
    """
    emptied(running_sandbox, SPEED)
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name in ("pip", "az"):
        (stubs / name).write_text("#!/bin/sh\nexit 0\n")
        (stubs / name).chmod(0o755)
    path = os.pathsep.join([str(stubs), str(BIN), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "GPUKUBE_SANDBOX": "1", "GPUKUBE_SANDBOX_STATE": running_sandbox.state_dir}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(script: str, environment: dict[str, str], directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-eu", "-c", script], env=environment, cwd=directory, capture_output=True, text=True, check=False
    )


def test_readme_when_listed_then_every_block_is_covered_here() -> None:
    assert len(re.findall(r"```\w+\n", README)) == len(blocks("console")) + len(blocks("sh")) + len(blocks("yaml"))
    assert (len(blocks("console")), len(blocks("sh")), len(blocks("yaml"))) == (1, 5, 1)


def test_main_line_when_gpukube_is_installed_then_56_devices_are_proven_on_each_cloud(shell: dict[str, str]) -> None:
    loop = readme_line("main").partition("&& (for ")[2]
    done = run(f"(for {loop}", shell, ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("nvidia.com/gpu: 56 verified on 1 node") == 6, "three clouds, created and verified"


def test_console_block_when_its_command_runs_then_prints_the_same(shell: dict[str, str]) -> None:
    command, _, shown = blocks("console")[0].partition("\n")
    done = run(command.removeprefix("$ ").replace("pools.yaml", "examples/aks-mig-single.yaml"), shell, ROOT)
    assert done.stdout.startswith(shown)


def test_offline_block_when_run_then_each_line_answers(shell: dict[str, str], tmp_path: Path) -> None:
    requested = (
        " --provider eks --name train --account 111122223333 --region us-east-1 --gpu T4"  # there is no terminal
    )
    told = run(blocks("sh")[2].replace("gpukube init ", f"gpukube init{requested} "), shell, tmp_path)
    assert told.returncode == 0, told.stderr
    for part in ("pools[].sharing.mig.profile", "p4de.24xlarge", "20 GB", "data: embedded table from"):
        assert part in told.stdout
    assert run("gpukube validate -f pools.yaml", shell, tmp_path).returncode == 0


def test_real_cluster_and_ci_blocks_when_run_then_succeed(shell: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text(blocks("yaml")[0])
    *_, real, ci = blocks("sh")
    created = run(real, shell, tmp_path)
    assert created.returncode == 0, created.stderr
    compared = run(ci, shell, tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert "gpukube diff: no differences" in compared.stdout
    assert "apply: 2 unchanged" in compared.stdout


def test_exit_codes_when_compared_then_the_table_has_them_all() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_links_when_followed_then_files_and_anchors_exist() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


def test_index_when_compared_with_the_folder_then_lists_every_page_once() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = [target for target in re.findall(r"\]\(([^)#]+)\)", index) if not target.startswith("..")]
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    families = {page for page in pages if page.startswith("diagnostics/")} - {"diagnostics/README.md"}
    assert sorted(listed) == sorted(pages - families - {"README.md"})


@cache
def anchors(page: Path) -> set[str]:
    """List the anchors of a page: its own, and those that GitHub makes of headings."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return {*re.findall(r'<a id="([^"]+)">', text), *made}


def test_spec_page_when_models_change_then_it_is_written_again() -> None:
    assert PAGE.read_text() == spec_page(), "run: python tools/spec_docs.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_main_line_when_on_a_fresh_machine_then_installs_and_proves(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": _without(str(BIN))}
    try:
        done = run(readme_line("main"), environment, clone)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("nvidia.com/gpu: 56 verified on 1 node") == 6
    finally:
        run(".venv/bin/gpukube sandbox down", environment, clone)


def _without(directory: str) -> str:
    assert shutil.which("python3")
    return os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if part != directory)
