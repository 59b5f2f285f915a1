"""API versions of Microsoft.ContainerService that this emulation supports.

In scope: the table and its errors. Out of scope: which property belongs to which version (`schema`).

Source: the default API of every release of azure-mgmt-containerservice from 34.0 to 41.9.0b1.
"""

from __future__ import annotations

from gpukube_sandbox.aks.answers import arm_error

PREVIEW_SUFFIX = "-preview"

API_VERSIONS = (
    "2024-09-01", "2025-02-01", "2025-03-01", "2025-04-01", "2025-05-01", "2025-08-01", "2025-10-01",
    "2026-01-01", "2026-01-02-preview", "2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01", "2026-05-02-preview",
    "2026-06-01", "2026-07-01", "2026-08-01", "2026-08-02-preview",
)  # fmt: skip


def require_api_version(version: str | None, resource_type: str, location: str) -> str:
    """Return the version, or raise as ARM does if it is absent or unknown.

    Raises:
        ArmError: 400 MissingApiVersionParameter or NoRegisteredProviderFound (docs: azure-resource-manager, common
            errors; the exact messages are unconfirmed).
    """
    if not version:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise arm_error(400, "MissingApiVersionParameter", message)
    if version.lower() not in API_VERSIONS:
        known = ", ".join(reversed(API_VERSIONS))
        message = (
            f"No registered resource provider found for location '{location}' and API version '{version}' for type "
            f"'{resource_type}'. The supported api-versions are '{known}'."
        )
        raise arm_error(400, "NoRegisteredProviderFound", message)
    return version.lower()
