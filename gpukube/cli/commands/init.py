"""`gpukube init`: write a commented starter spec, from flags or from answers on a terminal."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from gpukube.cli.options import Choices, option, takes

app = typer.Typer()


def _complete_cloud(incomplete: str) -> list[str]:
    from gpukube.entry_points import provider_names

    return [cloud for cloud in provider_names() if cloud.startswith(incomplete)]


def _complete_gpu(incomplete: str) -> list[str]:
    from gpukube.gpu.models import MODELS

    return [model.name for model in MODELS if model.sold and model.name.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags of `init`; on a terminal it prompts for missing ones."""

    providers: tuple[str, ...] = option(
        "--provider", default=(), metavar="CLOUD", autocompletion=_complete_cloud,
        help="eks, aks or gke; may be repeated, one cluster per cloud.",
    )  # fmt: skip
    name: str = option("--name", default="", metavar="NAME", help="Cluster name, used on each cloud.")
    owner: str = option(
        "--owner",
        default="",
        metavar="NAME",
        help="Owner of the pools (metadata.name); default: the cluster's name.",
    )
    account: str = option("--account", default="", metavar="ID", help="EKS: AWS account.")
    region: str = option("--region", default="", metavar="REGION", help="EKS: AWS region.")
    subscription: str = option("--subscription", default="", metavar="ID", help="AKS: Azure subscription.")
    resource_group: str = option("--resource-group", default="", metavar="NAME", help="AKS: resource group.")
    project: str = option("--project", default="", metavar="ID", help="GKE: Google project.")
    location: str = option("--location", default="", metavar="PLACE", help="GKE: region or zone.")
    gpu: str = option(
        "--gpu", default="", metavar="MODEL", autocompletion=_complete_gpu, help="GPU model, such as T4-16GB."
    )
    count: int | None = option(
        "--count", default=None, metavar="N", min=1, help="GPUs per node (default: that of the smallest machine)."
    )
    nodes: int | None = option("--nodes", default=None, metavar="N", min=0, help="Nodes of the pool (default 1).")
    mig: str = option("--mig", default="", metavar="PROFILE", help="MIG profile, such as 1g.5gb.")
    replicas: int | None = option(
        "--replicas", default=None, metavar="N", min=2, help="Share each GPU, or each MIG instance, by time-slicing."
    )
    spot: bool = option("--spot", default=False, help="Use Spot machines.")
    out: str = option(
        "--out", default="pools.yaml", metavar="FILE", help="Output file (default pools.yaml); - for stdout."
    )
    force: bool = option("--force", default=False, help="Overwrite the file.")


@app.command()
@takes()
def init(choices: Choices, flags: Flags) -> None:
    """Write a commented starter spec. Checks it with the rules of `validate`; makes no cloud calls.

    On a terminal it prompts for missing values. `gpukube --sandbox init` never prompts: it uses example values, for all
    clouds. Exit codes: 0 written, 4 something is wrong or missing.
    """
    from gpukube.cli.bodies import init as starting
    from gpukube.engine.starter import Answers

    identity = {
        "account": flags.account,
        "region": flags.region,
        "subscription": flags.subscription,
        "resourceGroup": flags.resource_group,
        "project": flags.project,
        "location": flags.location,
    }
    clouds = tuple(dict.fromkeys(flags.providers))
    answers = Answers(
        providers=clouds,
        names=dict.fromkeys(clouds, flags.name) if flags.name else {},
        identity={key: value for key, value in identity.items() if value},
        owner=flags.owner,
        gpu=flags.gpu,
        count=flags.count or 0,
        nodes=1 if flags.nodes is None else flags.nodes,
        mig=flags.mig,
        replicas=flags.replicas or 0,
        spot=flags.spot,
    )
    starting.start(
        answers,
        name=flags.name,
        ask_nodes=flags.nodes is None,
        out=flags.out,
        force=flags.force,
        sandbox=choices.sandbox,
    )
