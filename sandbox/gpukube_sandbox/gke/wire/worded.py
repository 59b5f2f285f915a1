"""How an injected fault of action "status" is worded by a Google API, over both transports.

In scope: that wording. Out of scope: when it strikes (`faults`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.wire.answers import HTTP_STATUS, Refusal, code_of_status

if TYPE_CHECKING:
    from starlette.types import Scope

    from gpukube_sandbox.faults import Fault


def fault_refusal(fault: Fault) -> Refusal:
    """The refusal a fault stands for: its `code` if that is a canonical one, else what its HTTP status stands for."""
    code = fault.code if fault.code in HTTP_STATUS else code_of_status(fault.status)
    return Refusal(code, fault.message or f"Injected fault: {fault.status}.")


def as_google(fault: Fault, scope: Scope, body: bytes) -> tuple[dict[str, str], bytes]:
    """Headers and body over REST."""
    del scope, body
    content = fault.body if fault.body is not None else fault_refusal(fault).body()
    return {"content-type": "application/json; charset=UTF-8"}, json.dumps(content).encode()
