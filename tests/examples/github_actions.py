"""As much of GitHub's runner as the workflows of examples/ci use: it runs them, in tests, in the sandbox.

In scope: expressions, jobs and steps, composite actions, the files and commands by which steps speak to the runner.
Out of scope: what the workflows should do (test_ci_github). What the runner does not know is an error, so that a
slip in a workflow (an unknown input, a step id that is not there) is not an empty string, as on GitHub.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.examples.shop import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.examples.shop import Shop

OURS = "OWNER/gpukube@"
SIGN_IN = ("aws-actions/configure-aws-credentials", "azure/login", "google-github-actions/auth")
SHOWN = 10
"""Annotations of a level that GitHub shows of one step."""
SUMMARY_BYTES = 1024 * 1024
SHELLS = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
_TOKENS = re.compile(r"\s*(?:'((?:[^']|'')*)'|(\d+)|([A-Za-z_][\w-]*(?:\.[\w-]+)*)|(&&|\|\||==|!=|[!(),]))")
_STATUS = re.compile(r"\b(?:success|failure|cancelled|always)\(\)")

Tree = Any  # YAML, and the contexts made of it


class Expression:
    """One `${{ ... }}`."""

    def __init__(self, text: str, contexts: Mapping[str, Tree], functions: Mapping[str, Callable[..., Tree]]) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._contexts, self._functions = contexts, functions
        at = 0
        while at < len(text.rstrip()):
            found = _TOKENS.match(text, at)
            assert found, f"expression: {text[at:]}"
            kinds = ("text", "number", "name", "sign")
            self._tokens.append(
                next((kind, found[index]) for index, kind in enumerate(kinds, 1) if found[index] is not None)
            )
            at = found.end()

    def value(self) -> Tree:
        """Work it out."""
        result = self._either()
        assert not self._tokens, f"expression goes on: {self._tokens}"
        return result

    def _take(self, sign: str) -> bool:
        if self._tokens and self._tokens[0] == ("sign", sign):
            self._tokens.pop(0)
            return True
        return False

    def _either(self) -> Tree:
        left = self._both()
        while self._take("||"):
            right = self._both()
            left = left or right
        return left

    def _both(self) -> Tree:
        left = self._compared()
        while self._take("&&"):
            right = self._compared()
            left = left and right
        return left

    def _compared(self) -> Tree:
        left = self._single()
        if self._take("=="):
            return _text(left).lower() == _text(self._single()).lower()
        if self._take("!="):
            return _text(left).lower() != _text(self._single()).lower()
        return left

    def _single(self) -> Tree:
        if self._take("!"):
            return not self._single()
        if self._take("("):
            inner = self._either()
            assert self._take(")")
            return inner
        kind, text = self._tokens.pop(0)
        if kind == "text":
            return text.replace("''", "'")
        if kind == "number":
            return int(text)
        if self._take("("):
            arguments = []
            while not self._take(")"):
                arguments.append(self._either())
                self._take(",")
            return self._functions[text](*arguments)
        return self._look_up(text)

    def _look_up(self, path: str) -> Tree:
        value: Tree = self._contexts
        for part in path.split("."):
            assert isinstance(value, dict), f"{path}: nothing below a value"
            if part not in value and path.startswith(("vars.", "github.event.", "inputs.")):
                return ""
            assert part in value, f"{path}: there is no {part}"
            value = value[part]
        return value


def _text(value: Tree) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


@dataclass
class Step:
    """How a step ended."""

    outcome: str
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    annotations: list[tuple[str, str]] = field(default_factory=list)
    code: int = 0


@dataclass
class Job:
    """How a job ended."""

    name: str
    result: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    signed_in: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """The log of all steps."""
        return "\n".join(step.log for step in self.steps.values())

    @property
    def summary(self) -> str:
        """What the page of the run shows."""
        return "\n".join(step.summary for step in self.steps.values())

    def annotated(self, level: str) -> list[str]:
        """List the annotations of a level, in order."""
        return [text for step in self.steps.values() for kind, text in step.annotations if kind == level]


@dataclass
class GitHub:
    """A repository on GitHub with its settings.

    Args:
        shop: The machine that runs jobs.
        repository: Its files.
        variables: Those of its settings, by which workflows sign in.
    """

    shop: Shop
    repository: Path
    variables: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, dict[str, bytes]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)
    _runs: int = 0

    def run(self, workflow: Path, event: str, payload: Tree = None, inputs: Tree = None) -> dict[str, Job]:
        """Run all jobs of a workflow.

        Args:
            workflow: Its file.
            event: pull_request, push, ...; the workflow must be for it.
            payload: The event's.
            inputs: Of workflow_dispatch.
        """
        document = yaml.safe_load(workflow.read_text())
        assert event in document[True], f"{workflow.name} is not for {event}"  # YAML's `on`
        assert document["permissions"] == {}
        self._runs += 1
        jobs: dict[str, Job] = {}
        contexts = {
            "github": {
                "event_name": event,
                "event": payload or {},
                "repository": "acme/gpu-pools",
                "server_url": "https://github.com",
                "run_id": str(self._runs),
                "run_attempt": "1",
                "token": "ghs_of_the_job",
            },
            "inputs": inputs or {},
            "vars": self.variables,
        }
        for name, spec in document["jobs"].items():
            self._job(name, spec, contexts, jobs)
        return jobs

    def again(self, workflow: Path, name: str, jobs: dict[str, Job]) -> Job:
        """Run one job of a run once more, with what the others gave: "Re-run failed jobs"."""
        spec = yaml.safe_load(workflow.read_text())["jobs"][name]
        contexts = {
            "github": {"repository": "acme/gpu-pools", "run_id": str(self._runs), "run_attempt": "2", "token": "t"},
            "inputs": {},
            "vars": self.variables,
        }
        rerun = {other: job for other, job in jobs.items() if other != name}
        self._job(name, spec, contexts, rerun)
        return rerun[name]

    def _job(self, name: str, spec: Tree, contexts: dict[str, Tree], jobs: dict[str, Job]) -> None:
        needs = spec.get("needs", [])
        needed = {other: jobs[other] for other in ([needs] if isinstance(needs, str) else needs)}
        job = jobs[name] = Job(name)
        outputs = {other: {"result": one.result, "outputs": one.outputs} for other, one in needed.items()}
        run = Steps(self, job, spec, {**contexts, "needs": outputs})
        if not all(one.result == "success" for one in needed.values()) or not run.holds(spec.get("if")):
            job.result = "skipped"
            return
        for index, step in enumerate(spec["steps"]):
            run.step(step, str(index))
        job.steps = run.done
        job.outputs = {key: run.text(value) for key, value in spec.get("outputs", {}).items()}


class Steps:
    """The steps of a job, or those of a composite action in one."""

    def __init__(self, github: GitHub, job: Job, spec: Tree, contexts: dict[str, Tree]) -> None:
        self.github, self.job, self.spec = github, job, spec
        self.contexts: dict[str, Tree] = {**contexts, "steps": {}}
        self.done: dict[str, Step] = {}
        self.failed = False
        self.environ: dict[str, str] = {}
        self.workspace = github.shop.directory / "work" / str(next(github.numbers))
        self.temp = github.shop.directory / "temp"
        self.temp.mkdir(exist_ok=True)

    def text(self, value: Tree) -> str:
        """Fill in the expressions of a value."""
        return re.sub(r"\$\{\{(.*?)\}\}", lambda found: _text(self._value(found[1])), _text(value))

    def holds(self, condition: Tree) -> bool:
        """Whether a job or step is run."""
        if condition is None:
            return not self.failed
        inner = re.fullmatch(r"\$\{\{(.*)\}\}", _text(condition).strip())
        text = inner[1] if inner else _text(condition)
        if not _STATUS.search(text) and self.failed:
            return False
        return bool(self._value(text))

    def _value(self, text: str) -> Tree:
        functions: dict[str, Callable[..., Tree]] = {
            "always": lambda: True,
            "cancelled": lambda: False,
            "success": lambda: not self.failed,
            "failure": lambda: self.failed,
            "startsWith": lambda whole, start: _text(whole).lower().startswith(start.lower()),
        }
        return Expression(text, self.contexts, functions).value()

    def step(self, step: Tree, index: str) -> None:
        """Run a step, or skip it."""
        identity = step.get("id", index)
        if not self.holds(step.get("if")):
            result = Step("skipped")
        elif "run" in step:
            result = self._run(step)
        else:
            result = self._use(step)
        if result.outcome == "failure":
            self.failed = True
            self.job.result = "failure"
        self.contexts["steps"][identity] = {"outcome": result.outcome, "outputs": Outputs(result.outputs)}
        self.done[identity] = result

    def _run(self, step: Tree) -> Step:
        """Run a step's text as the runner does, and read what it left."""
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        environ = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
            "RUNNER_TEMP": str(self.temp),
            **self.environ,
            **{name: str(file) for name, file in files.items()},
            **{name: self.text(value) for name, value in step.get("env", {}).items()},
        }
        assert "${{" not in step["run"], "a template in a script: pass it through env"
        ended = self.github.shop.run(step["run"], SHELLS[step.get("shell")], environ, self.workspace)
        self.environ |= pairs(files["GITHUB_ENV"])
        summary = files["GITHUB_STEP_SUMMARY"].read_bytes()
        assert len(summary) <= SUMMARY_BYTES
        annotations = list(annotated(ended.log))
        for level in ("error", "warning", "notice"):
            assert sum(kind == level for kind, _ in annotations) <= SHOWN, f"GitHub would drop some: {annotations}"
        outcome = "failure" if ended.code else "success"
        outputs = pairs(files["GITHUB_OUTPUT"])
        return Step(outcome, outputs, ended.log, summary.decode(), annotations, ended.code)

    def _use(self, step: Tree) -> Step:
        """Use an action: ours is run, the platform's do here what they do there, signing in is noted."""
        action, _, _ = step["uses"].partition("@")
        given = {name: self.text(value) for name, value in step.get("with", {}).items()}
        if step["uses"].startswith(OURS):
            return self._composite(given)
        if action == "actions/checkout":
            assert given == {"persist-credentials": "false"}
            shutil.copytree(self.github.repository, self.workspace)
            return Step("success")
        if action == "actions/setup-python":
            return Step("success", {"python-path": str(self.github.shop.tools / "python")})
        if action == "actions/upload-artifact":
            file = self.workspace / given["path"]
            self.github.artifacts[given["name"]] = {file.name: file.read_bytes()}
            return Step("success", {"artifact-id": given["name"]})
        if action == "actions/download-artifact":
            for name, content in self.github.artifacts[given["artifact-ids"]].items():
                (self.workspace / name).write_bytes(content)
            return Step("success")
        assert action in SIGN_IN, action
        assert self.spec["permissions"]["id-token"] == "write"
        self.job.signed_in[action] = given
        return Step("success")

    def _composite(self, given: dict[str, str]) -> Step:
        document = yaml.safe_load((ROOT / "action.yml").read_text())
        known = document["inputs"]
        assert set(given) <= set(known), f"no such inputs: {set(given) - set(known)}"
        assert all(name in given for name, one in known.items() if one.get("required"))
        inputs = {name: given.get(name, self.text(one.get("default"))) for name, one in known.items()}
        inner = Steps(self.github, self.job, self.spec, {**self.contexts, "inputs": inputs})
        inner.workspace, inner.environ = self.workspace, self.environ
        for index, step in enumerate(document["runs"]["steps"]):
            inner.step(step, str(index))
        outputs = {name: inner.text(one["value"]) for name, one in document["outputs"].items()}
        mine = inner.done.values()
        return Step(
            "failure" if inner.failed else "success",
            outputs,
            "\n".join(one.log for one in mine),
            "".join(one.summary for one in mine),
            [annotation for one in mine for annotation in one.annotations],
            max(one.code for one in mine),
        )


class Outputs(dict[str, str]):
    """Outputs of a step: one that was not written is empty."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return ""


def pairs(file: Path) -> dict[str, str]:
    """Read the `name=value` lines by which a step gives outputs and variables."""
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def annotated(log: str) -> Iterator[tuple[str, str]]:
    """Find the annotations in a log: commands, and lines that a problem matcher takes."""
    matchers: dict[str, Tree] = {}
    for line in log.splitlines():
        if found := re.match(r"::(error|warning|notice)(?: [^:]*)?::(.*)", line):
            yield found[1], line.removeprefix(f"::{found[1]}").strip()
        elif line.startswith("::add-matcher::"):
            added = json.loads(Path(line.removeprefix("::add-matcher::")).read_text())
            matchers |= {one["owner"]: one["pattern"][0] for one in added["problemMatcher"]}
        elif found := re.match(r"::remove-matcher owner=(.+)::", line):
            del matchers[found[1]]
        for pattern in matchers.values():
            if taken := re.match(pattern["regexp"], line):
                place = ":".join(taken[pattern[key]] for key in ("file", "line", "column") if key in pattern)
                yield taken[pattern["severity"]], f"{place} {taken[pattern['message']]}".strip()
