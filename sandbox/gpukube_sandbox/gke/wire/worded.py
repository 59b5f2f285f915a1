"""Injected faults of action "status" in the form of a Google API, for both transports.

In scope: that form. Out of scope: when they occur (`faults`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.wire.answers import HTTP_STATUS, GoogleError, code_of_status

if TYPE_CHECKING:
    from starlette.types import Scope

    from gpukube_sandbox.faults import Fault


def fault_error(fault: Fault) -> GoogleError:
    """Return the error of a fault: its `code` if that is canonical, otherwise the code of its HTTP status."""
    code = fault.code if fault.code in HTTP_STATUS else code_of_status(fault.status)
    return GoogleError(code, fault.message or f"Injected fault: {fault.status}.")


def as_google(fault: Fault, scope: Scope, body: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and body over REST."""
    del scope, body
    content = fault.body if fault.body is not None else fault_error(fault).body()
    return {"content-type": "application/json; charset=UTF-8"}, json.dumps(content).encode()
