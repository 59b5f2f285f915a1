"""The wheel as users get it: the packages and their data, no tests, the extras and the entry points."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import Metadata
from trove_classifiers import classifiers

import gpukube_sandbox
from gpukube import __version__
from tests.packaging.conftest import build

if TYPE_CHECKING:
    from email.message import Message

    from tests.packaging.conftest import Built

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
PACKED = (
    *("LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "constraints.txt", "pyproject.toml", "Containerfile"),
    *(
        ".pre-commit-hooks.yaml",
        ".ci/run",
        ".github/workflows/release.yml",
        ".dockerignore",
        "examples/three-clouds.yaml",
        "docs/spec.md",
        "tools/readme_line.py",
    ),
    "tests/packaging/test_wheel.py",
)
"""Of the sdist: distributors build, test and read from it alone."""
RUN = """
import sys, gpukube
from gpukube.__main__ import main
print(gpukube.__file__)
sys.exit(main(["validate", "-f", sys.argv[1]]) or main(["docs", "first-run"]))
"""


@pytest.fixture(scope="module")
def wheel(built: Built) -> Path:
    return built.wheel


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata_of(wheel: Path, name: str) -> str:
    """Read a file of the wheel's .dist-info."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [n for n in archive.namelist() if n.endswith(f".dist-info/{name}")]
        return archive.read(path).decode()


def test_wheel_when_built_then_the_packages_and_nothing_else(names: list[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {Path(folder).name for folder in FOLDERS}
    strangers = ("test_", "/tests/", ".pyc", "conftest.py")
    assert not [name for name in names if any(part in name for part in strangers)]


def tracked(folder: str) -> list[str]:
    """List the files of a folder, without caches."""
    base = ROOT / folder
    return sorted(
        str(path.relative_to(base.parent))
        for path in base.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_wheel_when_built_then_every_file_of_the_packages_is_in_it(folder: str, names: list[str]) -> None:
    assert set(tracked(folder)) <= set(names)


@pytest.mark.parametrize(
    "name",
    [
        "gpukube/py.typed",
        "gpukube_aks/py.typed",
        "gpukube/gpu/data/instances.json",
        "gpukube/gpu/data/mig.json",
        "gpukube/README.md",
        *(f"gpukube/docs/{page.relative_to(ROOT / 'docs')}" for page in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_wheel_when_built_then_data_and_marks_are_in_it(name: str, names: list[str]) -> None:
    assert name in names


def test_entry_points_when_read_then_the_command_and_every_provider_in_the_wheel(wheel: Path) -> None:
    parser = configparser.ConfigParser()
    parser.read_string(metadata_of(wheel, "entry_points.txt"))
    assert dict(parser["console_scripts"]) == {"gpukube": "gpukube.__main__:main"}
    providers = dict(parser["gpukube.providers"])
    assert providers["aks"] == "gpukube_aks:AksProvider"
    assert {target.partition(":")[0] for target in providers.values()} == {
        Path(folder).name for folder in FOLDERS if folder.startswith("providers/")
    }


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return Parser().parsestr(metadata_of(wheel, "METADATA"))


def requirements(metadata: Message, extra: str) -> set[str]:
    """Return the names of the libraries that an extra brings; "" for those always there."""
    found = set()
    for text in metadata.get_all("Requires-Dist") or []:
        head, _, marker = text.partition(";")
        mine = f"extra == '{extra}'" in marker if extra else "extra ==" not in marker
        if mine:
            found.add(head.split("[")[0].strip().split(">")[0].split("<")[0].split("=")[0].strip().lower())
    return found


SDKS = frozenset({"azure-mgmt-containerservice", "azure-identity", "boto3", "google-cloud-container"})
EXTRAS: dict[str, tuple[set[str], frozenset[str]]] = {
    # extra: (what it brings at least, what it must not bring); "" is what is always there
    "": (
        {"typer", "rich", "pydantic", "pyyaml", "lightkube", "platformdirs"},
        SDKS | {"uvicorn", "helm-python-sdk"},
    ),
    "aks": (
        {"azure-mgmt-containerservice", "azure-identity", "azure-core"},
        frozenset({"boto3", "google-cloud-container", "uvicorn", "helm-python-sdk"}),
    ),
    "helm": ({"helm-python-sdk"}, SDKS | {"uvicorn"}),
    "sandbox": ({"gpukube-sandbox"}, SDKS),
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_extra_when_read_then_brings_what_it_is_for_and_nothing_of_the_others(extra: str, metadata: Message) -> None:
    wanted, unwanted = EXTRAS[extra]
    found = requirements(metadata, extra)
    assert found >= wanted
    assert not found & unwanted


def test_extra_all_when_read_then_the_clouds_and_helm(metadata: Message) -> None:
    extras = set(PROJECT["project"]["optional-dependencies"])
    assert set(metadata.get_all("Provides-Extra") or []) == extras
    (line,) = PROJECT["project"]["optional-dependencies"]["all"]
    named = set(line.partition("[")[2].rstrip("]").split(","))
    assert named == extras - {"all", "dev", "sandbox"}


def test_versions_when_compared_then_both_packages_and_the_extra_have_the_same() -> None:
    (pin,) = PROJECT["project"]["optional-dependencies"]["sandbox"]
    assert (gpukube_sandbox.__version__, pin) == (__version__, f"gpukube-sandbox=={__version__}")
    assert (ROOT / "sandbox" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_sandbox_wheel_when_built_then_all_of_its_package_with_its_command_and_its_door(tmp_path: Path) -> None:
    wheel = build("wheel", ROOT / "sandbox", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"gpukube_sandbox"}
    assert set(tracked("sandbox/gpukube_sandbox")) <= names
    points = configparser.ConfigParser()
    points.read_string(metadata_of(wheel, "entry_points.txt"))
    assert dict(points["console_scripts"]) == {"gpukube-sandbox": "gpukube_sandbox.cli:main"}
    assert dict(points["gpukube.sandbox"]) == {"door": "gpukube_sandbox.door"}


def test_embedded_helm_when_read_then_pinned_and_only_where_its_wheel_exists(metadata: Message) -> None:
    (line,) = [
        text
        for text in metadata.get_all("Requires-Dist") or []
        if text.startswith("helm-python-sdk") and "extra == 'helm'" in text
    ]
    assert "==" in line.partition(";")[0]
    assert "sys_platform == 'linux'" in line
    assert "platform_machine == 'x86_64'" in line


def test_metadata_when_read_then_version_python_and_licence(metadata: Message, names: list[str]) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("gpukube", __version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_wheel_when_on_the_path_alone_then_the_command_runs_and_finds_its_data(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)  # noqa: S202 - our own wheel
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            RUN,
            str(ROOT / "examples" / "aks-mig-single.yaml"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    place, validated, *page = done.stdout.splitlines()
    assert (place, validated) == (str(tmp_path / "gpukube" / "__init__.py"), "ok: 1 pool on 1 cluster"), done.stderr
    assert page == (ROOT / "README.md").read_text("utf-8").splitlines()


def test_sdist_when_a_wheel_is_built_of_it_then_the_same_bytes(built: Built) -> None:
    assert built.rebuilt.name == built.wheel.name
    assert built.rebuilt.read_bytes() == built.wheel.read_bytes()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with the files of the repository")
def test_sdist_when_listed_then_what_is_needed_to_test_and_read_it(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked_files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert names - set(tracked_files.splitlines()) == {"PKG-INFO"}, "nothing that is not in the repository"
    assert set(PACKED) <= names


def test_metadata_when_checked_as_an_index_does_then_valid(metadata: Message, wheel: Path) -> None:
    raw = metadata_of(wheel, "METADATA")
    checked = Metadata.from_email(raw, validate=True)
    assert checked.description_content_type == "text/markdown"
    assert checked.description == (ROOT / "README.md").read_text("utf-8")
    assert checked.license_files == ["LICENSE"]
    assert checked.dynamic is None
    assert set(metadata.get_all("Classifier") or []) <= classifiers
    assert len(checked.summary or "") <= 512


def test_public_names_when_declared_then_they_exist() -> None:
    for path in (ROOT / "gpukube" / "api.py", ROOT / "gpukube" / "provider.py", ROOT / "gpukube" / "errors.py"):
        tree = ast.parse(path.read_text("utf-8"))
        names = next(
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        )
        module = __import__(f"gpukube.{path.stem}", fromlist=["__all__"])
        assert [name for name in names if not hasattr(module, name)] == []
        assert len(names) == len(set(names))


def test_internal_modules_when_read_then_none_lists_its_names() -> None:
    public = {"gpukube/api.py", "gpukube/errors.py", "gpukube/provider.py"}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        text, place = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        if place in public or path.name == "__init__.py" or "testing" in path.parts or "\n__all__" not in text:
            continue
        tree = ast.parse(text)
        imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        (listed,) = (
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        )
        assert imported & set(listed), f"{place} re-exports nothing: take its __all__ out"
