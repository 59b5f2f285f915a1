"""The environment that points the official clients to the sandbox: `az`, `gcloud`, `kubectl`, `helm`, the SDKs.

In scope: variables and the files they name. Out of scope: starting anything. Standard library only.

`az` needs no login: a profile and a custom cloud are written directly (clouds.config and azureProfile.json, as
`az cloud register` and `az login` write them). The user is a managed identity with the sandbox's token endpoint.
"""

from __future__ import annotations

import configparser
import io
import json
import os
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube_sandbox.daemon import call
from gpukube_sandbox.eks.wire.identity import access_key
from gpukube_sandbox.guard import DEAD_PROXY, is_credential
from gpukube_sandbox.state import CLIENT_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.state import SandboxInfo

_CLOUD = "gpukubesandbox"
_TENANT = "00000000-0000-0000-0000-0000000000aa"
_NO_PROXY = "127.0.0.1,localhost,::1"
_GOOGLE_APIS = ("CONTAINER", "CLOUDBILLING", "CLOUDRESOURCEMANAGER", "IAM", "SERVICEUSAGE")
"""APIs that gcloud calls for node pools, except Compute Engine, whose paths have another prefix."""
_ACCOUNT, _REGION = "111122223333", "us-east-1"


def env(info: SandboxInfo) -> dict[str, str]:
    """Write the clients' files below the state directory, and return the variables that name them.

    Args:
        info: A running sandbox; its current clusters are written to the kubeconfig, their subscriptions to the profile.

    Returns:
        Variables to set. Proxies point to a dead port, so that no client reaches beyond loopback by mistake.

    Raises:
        SandboxError: It does not respond.
    """
    directory = Path(info.state_dir) / CLIENT_FILES
    azure = directory / "azure"
    directory.mkdir(mode=0o700, exist_ok=True)
    azure.mkdir(mode=0o700, exist_ok=True)
    document = kubeconfig(info)
    _write(directory / "kubeconfig", json.dumps(document["kubeconfig"], indent=2))
    subscriptions = document["subscriptions"]
    names = [str(name) for name in subscriptions] if isinstance(subscriptions, list) else []
    _write(azure / "azureProfile.json", json.dumps(_profile(names)))
    _write(azure / "clouds.config", _clouds(info, names))
    _write(azure / "config", _ini({"cloud": {"name": _CLOUD}, "core": _CORE, "logging": {"enable_log_file": "no"}}))
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), DEAD_PROXY)
    return proxies | {
        "AZURE_CONFIG_DIR": str(azure),
        "AZURE_CORE_COLLECT_TELEMETRY": "no",
        "REQUESTS_CA_BUNDLE": info.ca_path,
        "IDENTITY_ENDPOINT": f"{info.arm_url}/msi/token",
        "IDENTITY_HEADER": info.secret,
        "NO_PROXY": _NO_PROXY,
        "no_proxy": _NO_PROXY,
        "KUBECONFIG": str(directory / "kubeconfig"),
        "GPUKUBE_SANDBOX": "1",
        "GPUKUBE_AKS_ENDPOINT": info.arm_url,
        **_amazon(info, document),
        **_google(info, document),
        "GPUKUBE_SANDBOX_STATE": info.state_dir,
        "GPUKUBE_SANDBOX_ID": info.sandbox_id,
        "GPUKUBE_SANDBOX_SECRET": info.secret,
        "GPUKUBE_SANDBOX_CHARTS": info.charts_url,
    }


def shell_lines(info: SandboxInfo, environment: Mapping[str, str]) -> list[str]:
    """Return lines for `eval` that point a shell to the sandbox.

    Args:
        info: A running sandbox.
        environment: The shell's current environment.

    Raises:
        SandboxError: It does not respond.
    """
    given = env(info)
    unset = [f"unset {name}" for name in names_to_unset(environment, given)]
    return unset + [f"export {name}={shlex.quote(value)}" for name, value in given.items()]


def names_to_unset(environment: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Return variables with real credentials to unset in sandbox mode, so that no client prefers them.

    Args:
        environment: The current environment.
        given: Variables from `env`, which stay.
    """
    return sorted(name for name in environment if is_credential(name) and name not in given)


def _amazon(info: SandboxInfo, document: dict[str, object]) -> dict[str, str]:
    """Return variables for boto3 and `aws`: dummy keys of the first account, and a profile per account id."""
    home = Path(info.state_dir) / CLIENT_FILES / "aws"
    home.mkdir(mode=0o700, exist_ok=True)
    places = document.get("accounts")
    accounts = {str(key): str(value) for key, value in places.items()} if isinstance(places, dict) else {}
    accounts = accounts or {_ACCOUNT: _REGION}
    first, region = next(iter(accounts.items()))
    config, credentials = {"default": {"region": region, "cli_pager": ""}}, {"default": _keys(first, info.secret)}
    for account, place in accounts.items():
        config[f"profile {account}"] = {"region": place, "cli_pager": ""}
        credentials[account] = _keys(account, info.secret)
    _write(home / "config", _ini(config))
    _write(home / "credentials", _ini(credentials))
    return {
        "AWS_ENDPOINT_URL": info.aws_url,
        "AWS_ACCESS_KEY_ID": access_key(first),
        "AWS_SECRET_ACCESS_KEY": info.secret,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_PAGER": "",
    }


def _keys(account: str, secret: str) -> dict[str, str]:
    return {"aws_access_key_id": access_key(account), "aws_secret_access_key": secret}


def _google(info: SandboxInfo, document: dict[str, object]) -> dict[str, str]:
    """Return variables for gcloud, google-auth (a dummy service account with the sandbox's token endpoint), gpukube.

    The files exist once there is a GKE cluster; the emulated Kubernetes APIs accept the same token.
    """
    home = Path(info.state_dir) / CLIENT_FILES / "google"
    config = home / "gcloud"
    config.mkdir(mode=0o700, parents=True, exist_ok=True)
    projects = document.get("projects")
    return {
        "CLOUDSDK_CONFIG": str(config),
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": f"{info.gke_url}/" for name in _GOOGLE_APIS},
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{info.gke_url}/compute/v1/",
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(home / "token"),
        "CLOUDSDK_CORE_PROJECT": str(projects[0]) if isinstance(projects, list) and projects else "gpukube-sandbox",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
        "CLOUDSDK_CORE_DISABLE_FILE_LOGGING": "1",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
        "CLOUDSDK_SURVEY_DISABLE_PROMPTS": "1",
        "GOOGLE_APPLICATION_CREDENTIALS": str(home / "credentials.json"),
        "GPUKUBE_GKE_ENDPOINT": info.gke_url,
        "GPUKUBE_GKE_GRPC": info.gke_grpc,
    }


_CORE = {"collect_telemetry": "no", "instance_discovery": "false", "survey_message": "no", "only_show_errors": "no"}


def kubeconfig(info: SandboxInfo) -> dict[str, object]:
    """Fetch `{"kubeconfig": one document for all clusters, "subscriptions": [ids], "projects": [ids]}`."""
    return call(info, "GET", "kubeconfig")


def _profile(subscriptions: list[str]) -> dict[str, object]:
    """Return azureProfile.json as `az login --identity` writes it."""
    entries = [
        {
            "id": subscription,
            "name": f"sandbox {subscription[:8]}",
            "state": "Enabled",
            "user": {"name": "systemAssignedIdentity", "type": "servicePrincipal", "assignedIdentityInfo": "MSI"},
            "isDefault": at == 0,
            "tenantId": _TENANT,
            "environmentName": _CLOUD,
            "homeTenantId": _TENANT,
            "managedByTenants": [],
        }
        for at, subscription in enumerate(subscriptions)
    ]
    return {"installationId": "00000000-0000-0000-0000-0000000000dd", "subscriptions": entries}


def _clouds(info: SandboxInfo, subscriptions: list[str]) -> str:
    section = {
        "endpoint_resource_manager": info.arm_tls_url,
        "endpoint_management": info.arm_tls_url,
        "endpoint_active_directory": info.arm_tls_url,
        "endpoint_active_directory_resource_id": "https://management.azure.com/",
        "endpoint_active_directory_graph_resource_id": info.arm_tls_url,
        "endpoint_microsoft_graph_resource_id": info.arm_tls_url,
        "profile": "latest",
    }
    return _ini({_CLOUD: section | ({"subscription": subscriptions[0]} if subscriptions else {})})


def _ini(sections: dict[str, dict[str, str]]) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict(sections)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    draft.replace(path)
