"""A `helm` command for machines without one: helm's command line, in front of the embedded Helm.

In scope: the verbs and flags that gpukube uses, as `helm VERB --help` of version 3.13 and newer has them; what is not
among them is refused, as helm refuses it. It shares no code with the product's side of that command line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NoReturn

import helm_python

VERSION = "v3.19.0"
"""Whose command line this is."""


class Strict(argparse.ArgumentParser):
    """Refuses in helm's words, and takes no flag that is abbreviated."""

    def __init__(self, verb: str) -> None:
        super().__init__(prog=f"helm {verb}", add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"Error: {message}\n")
        sys.exit(1)


def parser_of(verb: str) -> Strict:
    """Make the parser of a verb."""
    parser = Strict(verb)
    if verb == "version":
        parser.add_argument("--template", required=True)
        return parser
    if verb == "pull":
        parser.add_argument("chart")
        for flag in ("--version", "--repo"):
            parser.add_argument(flag)
        parser.add_argument("--plain-http", action="store_true")
        parser.add_argument("--destination", default=".")
        return parser
    parser.add_argument("name")
    parser.add_argument("--namespace", required=True)
    if verb in {"install", "upgrade"}:
        parser.add_argument("chart")
        parser.add_argument("--values", required=True)
    if verb == "rollback":
        parser.add_argument("revision", type=int)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--timeout", required=True)
    if verb in {"install", "upgrade"}:
        parser.add_argument("--output", choices=["table", "json", "yaml"])
        parser.add_argument("--labels")
        parser.add_argument("--skip-crds", action="store_true")
        parser.add_argument("--dry-run", nargs="?", const="client", choices=["none", "client", "server"])
    if verb == "upgrade":
        parser.add_argument("--install", action="store_true")
        parser.add_argument("--reset-values", action="store_true")
    if verb in {"upgrade", "rollback"}:
        parser.add_argument("--history-max", type=int)
    if verb == "uninstall":
        parser.add_argument("--keep-history", action="store_true")
    return parser


def change(
    config: helm_python.Config, verb: str, asked: argparse.Namespace, values: dict[str, object]
) -> dict[str, object]:
    """Install or upgrade, and return the release as `--output json` has it."""
    labels = dict(pair.split("=", 1) for pair in asked.labels.split(",")) if asked.labels else None
    common = {"namespace": asked.namespace, "timeout": int(asked.timeout.removesuffix("s")), "labels": labels}
    trial = asked.dry_run if asked.dry_run != "none" else None
    if verb == "upgrade" and not (asked.install and not config.list()):
        options = {"reset_values": asked.reset_values, "max_history": asked.history_max}
        release = config.upgrade(asked.chart, asked.name, values, dry_run=trial, **common, **options)
    else:
        release = config.install(asked.chart, asked.name, values, dry_run=trial, **common)
    told = dict(release)
    return {
        "name": asked.name,
        "version": told.get("version") or told.get("revision"),
        "info": {"status": told.get("status") or told["info"]["status"]},
        "manifest": told["manifest"],
    }


def main(verb: str, words: list[str]) -> None:
    """Do what a command line asks, by the embedded library's own functions."""
    if verb not in {"version", "pull", "install", "upgrade", "rollback", "uninstall"}:
        Strict("helm").error(f'unknown command "{verb}" for "helm"')
    asked = parser_of(verb).parse_args(words)
    if verb == "version":
        sys.stdout.write(asked.template.replace("{{.Version}}", VERSION))
        return
    if verb == "pull":
        helm_python.pull(asked.chart, destination=asked.destination, version=asked.version, repo_url=asked.repo)
        return
    values = json.load(sys.stdin) if getattr(asked, "values", None) == "-" else {}
    if not Path(asked.kubeconfig).is_file():
        Strict(verb).error(f"stat {asked.kubeconfig}: no such file or directory")
    timeout = int(asked.timeout.removesuffix("s"))
    with helm_python.Config(
        kubeconfig_path=asked.kubeconfig, namespace=asked.namespace, storage_driver="secret"
    ) as config:
        if verb == "rollback":
            config.rollback(asked.name, version=asked.revision, timeout=timeout)
        elif verb == "uninstall":
            config.uninstall(asked.name, timeout=timeout, keep_history=asked.keep_history)
        else:
            sys.stdout.write(json.dumps(change(config, verb, asked, values)))


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except helm_python.HelmError as error:
        sys.stderr.write(f"Error: {getattr(error, 'detail', '') or error}\n")
        sys.exit(1)
