"""Errors of ARM and of the AKS resource provider, in their two wire shapes.

In scope: the exception that a rule raises and its two body shapes. Out of scope: rules.

AKS itself sends flat bodies, `{"code", "details", "message", "subcode", "target"}` (seen in
Azure/bicep-registry-modules#7130 and Azure/azure-rest-api-specs#40740). The ARM front door, which handles
authentication, subscriptions, groups, API versions, and missing clusters, nests: `{"error": {"code", "message"}}`
(docs: azure-resource-manager, common errors).
"""

from __future__ import annotations

from typing import Literal

Json = dict[str, object]
"""A JSON object of a wire format; its contents are narrowed where they are read."""


class ArmError(Exception):
    """An error response, status 400 or higher.

    Args:
        status: HTTP status.
        code: Service error code.
        message: Service error text.
        shape: "flat" for the resource provider, "nested" for the ARM front door.
        target: Wire path of the invalid property.
        subcode: AKS's more specific code.
        headers: Additional response headers.
    """

    def __init__(  # noqa: PLR0913 - one keyword per field of the wire format
        self,
        status: int,
        code: str,
        message: str,
        *,
        shape: Literal["flat", "nested"] = "flat",
        target: str = "",
        subcode: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.shape = shape
        self.target = target
        self.subcode = subcode
        self.headers = headers or {}

    def body(self) -> Json:
        """Return the JSON body of this response."""
        if self.shape == "nested":
            error: Json = {"code": self.code, "message": self.message}
            return {"error": error | ({"target": self.target} if self.target else {})}
        flat: Json = {"code": self.code, "details": None, "message": self.message, "subcode": self.subcode}
        return flat | ({"target": self.target} if self.target else {})


def aks_error(code: str, message: str, *, target: str = "", status: int = 400, subcode: str = "") -> ArmError:
    """Return an error of the resource provider."""
    return ArmError(status, code, message, target=target, subcode=subcode)


def arm_error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> ArmError:
    """Return an error of the ARM front door, which the resource provider never sees."""
    return ArmError(status, code, message, shape="nested", headers=headers)


def bad_parameter(message: str, target: str) -> ArmError:
    """Return 400 InvalidParameter and its target, like `agentPoolProfile.count` (cluster-api-provider-azure#5947)."""
    return aks_error("InvalidParameter", message, target=target)


def error_detail(code: str, message: str, *, inner: str = "", target: str = "") -> Json:
    """Return the error of a failed operation: outer code, embedded text, and the plain text in `details`.

    Args:
        code: Outer code, such as "QuotaExceeded".
        message: Plain text.
        inner: Code of the compute service if it differs from the outer one.
        target: The compute service's name of the target.

    Source:
        Azure/karpenter-provider-azure pkg/fake/aksmachinesapi.go (provisioning errors of machines).
    """
    cause = inner or code
    embedded = f'Code="{cause}" Message="{message}"' + (f' Target="{target}"' if target else "")
    detail: Json = {"code": cause, "message": message, **({"target": target} if target else {})}
    return {"code": code, "message": embedded, "details": [detail]}


def wire_error(code: str, message: str) -> Json:
    """Return an operation error without further details."""
    return {"code": code, "message": message}
