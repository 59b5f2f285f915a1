"""Receives a call from either transport: checks the caller's access, and handles a bug of the sandbox itself.

In scope: the steps before every call. Out of scope: the calls (`service`), the transports.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.permissions import needs_of_call, permission_error
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.names import parse_name

if TYPE_CHECKING:
    from gpukube_sandbox.gke.service import GkeService
    from gpukube_sandbox.gke.wire.calls import Call

_LOG = logging.getLogger(__name__)


def answer_call(call: Call, service: GkeService, request: object) -> object:
    """Return the response to a call.

    Raises:
        GoogleError: The service's error; 403 for a project that does not exist; INTERNAL for a bug of the sandbox.
    """
    try:
        _check_project(call, service, request)
        service.admit(request)
        return call.answer(service, request)
    except GoogleError:
        raise
    except Exception as error:
        _LOG.exception("%s broke", call.name)
        raise GoogleError("INTERNAL", "Internal error encountered.") from error


def _check_project(call: Call, service: GkeService, request: object) -> None:
    """Reject a project that does not exist like one that the caller has no access to: the two look the same.

    The messages: jenkinsci/google-kubernetes-engine-plugin#95, and FairwindsOps/rbac-lookup#14 for calls whose
    permission is not in the reference.
    """
    name = str(getattr(request, call.field))
    project = parse_name(name).project if name else str(getattr(request, "project_id", ""))
    if not project or service.has_project(project):
        return
    for need in needs_of_call(call.name, name or f"projects/{project}", ""):
        raise permission_error(need)
    raise GoogleError("PERMISSION_DENIED", "The caller does not have permission")
