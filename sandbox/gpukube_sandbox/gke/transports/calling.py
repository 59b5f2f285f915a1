"""A call that has come in, over whichever transport: who may make it, and a mistake of the sandbox itself.

In scope: what stands before every call. Out of scope: what a call does (`service`), the transports.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.permissions import needs_of_call, refusal
from gpukube_sandbox.gke.wire.answers import Refusal
from gpukube_sandbox.gke.wire.names import parse_name

if TYPE_CHECKING:
    from gpukube_sandbox.gke.service import GkeService
    from gpukube_sandbox.gke.wire.calls import Call

_LOG = logging.getLogger(__name__)


def answer_call(call: Call, service: GkeService, request: object) -> object:
    """Answer a call.

    Raises:
        Refusal: The service's; 403 for a project that does not exist; INTERNAL for a mistake of the sandbox itself.
    """
    try:
        _check_project(call, service, request)
        service.admit(request)
        return call.answer(service, request)
    except Refusal:
        raise
    except Exception as error:
        _LOG.exception("%s broke", call.name)
        raise Refusal("INTERNAL", "Internal error encountered.") from error


def _check_project(call: Call, service: GkeService, request: object) -> None:
    """A project that does not exist is one that the caller may not see: nobody is told which it is.

    The sentences: jenkinsci/google-kubernetes-engine-plugin#95, and FairwindsOps/rbac-lookup#14 for calls whose
    permission is not in the reference.
    """
    name = str(getattr(request, call.field))
    project = parse_name(name).project if name else str(getattr(request, "project_id", ""))
    if not project or service.has_project(project):
        return
    for need in needs_of_call(call.name, name or f"projects/{project}", ""):
        raise refusal(need)
    raise Refusal("PERMISSION_DENIED", "The caller does not have permission")
