"""Who is asking: the dummy tokens of the sandbox, and the endpoints that hand them out.

Lives here: the token endpoint of managed identities, what `az` wants to discover, the check of bearer tokens. Must not
live here: anything that could take a real credential for good.

A token is an unsigned JWT of the sandbox's own issuer: `az` decodes it (its payload needs `tid`), nobody trusts it.
Over plain http, where Azure's SDKs send no token of their own accord, clients send the constant one.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from gpukube_sandbox.aks.answers import front_door
from gpukube_sandbox.guard import ACCESS_TOKEN

if TYPE_CHECKING:
    from starlette.requests import Request

    from gpukube_sandbox.aks.answers import Json

ISSUER = "https://sandbox.gpukube.invalid/"
TENANT = "00000000-0000-0000-0000-0000000000aa"
_LIFETIME_S = 3600
_OBJECT_ID = "00000000-0000-0000-0000-0000000000bb"


def dummy_token(resource: str, now: float) -> str:
    """An unsigned JWT for a resource, good for an hour and in this sandbox only."""
    payload = {
        "aud": resource,
        "iss": ISSUER,
        "tid": TENANT,
        "oid": _OBJECT_ID,
        "sub": _OBJECT_ID,
        "appid": "00000000-0000-0000-0000-0000000000cc",
        "iat": int(now),
        "nbf": int(now),
        "exp": int(now) + _LIFETIME_S,
        "ver": "1.0",
    }
    parts = ({"alg": "none", "typ": "JWT"}, payload)
    return ".".join(_encode(json.dumps(part).encode()) for part in parts) + "."


def is_dummy(token: str) -> bool:
    """Whether a token is one of the sandbox's own; age is not looked at, its clock is not the client's."""
    return _payload(token).get("iss") == ISSUER


def is_dummy_for(token: str, resource: str) -> bool:
    """Whether it is one of ours for that resource; a scope's `/.default` may be left on."""
    return is_dummy(token) and str(_payload(token).get("aud", "")).removesuffix("/.default").rstrip("/") == resource


def _payload(token: str) -> Json:
    pieces = token.split(".")
    if len(pieces) != len(("header", "payload", "signature")):
        return {}
    try:
        payload = json.loads(base64.urlsafe_b64decode(pieces[1] + "=" * (-len(pieces[1]) % 4)))
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def check_authorization(header: str | None) -> None:
    """Refuse a bearer token that is not ours, and a request without any.

    Raises:
        Refusal: 401 in ARM's shape, with the challenge that azure-core reads.
    """
    challenge = f'Bearer authorization_uri="https://login.example/{TENANT}", error="invalid_token"'
    headers = {"WWW-Authenticate": challenge}
    if header is None:
        # hashicorp/terraform-provider-azurerm#3612
        message = "Authentication failed. The 'Authorization' header is missing."
        raise front_door(401, "AuthenticationFailed", message, headers)
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not (is_dummy(token) or token == ACCESS_TOKEN):
        raise front_door(401, "InvalidAuthenticationToken", "The access token is invalid.", headers)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


async def _msi_token(request: Request) -> JSONResponse:
    """The App Service form of the managed-identity endpoint: GET with `resource` and X-IDENTITY-HEADER."""
    if not request.headers.get("x-identity-header"):
        return JSONResponse({"statusCode": 401, "message": "X-IDENTITY-HEADER is missing"}, 401)
    resource, now = request.query_params.get("resource", ""), time.time()
    return JSONResponse(
        {
            "access_token": dummy_token(resource, now),
            "expires_on": str(int(now) + _LIFETIME_S),
            "resource": resource,
            "token_type": "Bearer",
            "client_id": _OBJECT_ID,
        }
    )


async def _metadata(request: Request) -> JSONResponse:
    """One object, not a list: what `az cloud register` reads for discovery."""
    base = f"{request.url.scheme}://{request.url.netloc}"
    return JSONResponse(
        {
            "name": "gpukube-sandbox",
            "resourceManager": base,
            "portal": base,
            "graphAudience": base,
            "graph": base,
            "authentication": {
                "loginEndpoint": base,
                "audiences": ["https://management.azure.com/", base],
                "tenant": TENANT,
                "identityProvider": "AAD",
            },
            "suffixes": {"storage": "core.sandbox.invalid", "keyVaultDns": "vault.sandbox.invalid"},
        }
    )


async def _openid_configuration(request: Request) -> JSONResponse:
    base = f"{request.url.scheme}://{request.url.netloc}/{request.path_params['tenant']}"
    return JSONResponse(
        {
            "issuer": ISSUER,
            "token_endpoint": f"{base}/oauth2/v2.0/token",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
            "jwks_uri": f"{base}/discovery/v2.0/keys",
        }
    )


async def _token(_: Request) -> JSONResponse:
    """Client credentials of any kind give the dummy token; what was sent is not looked at and not kept."""
    token = dummy_token("https://management.azure.com/", time.time())
    return JSONResponse({"access_token": token, "expires_in": _LIFETIME_S, "token_type": "Bearer"})


def identity_routes() -> list[Route]:
    """Routes of the token endpoints and of discovery."""
    return [
        Route("/msi/token", _msi_token),
        Route("/metadata/endpoints", _metadata),
        Route("/{tenant}/v2.0/.well-known/openid-configuration", _openid_configuration),
        Route("/{tenant}/.well-known/openid-configuration", _openid_configuration),
        Route("/{tenant}/oauth2/v2.0/token", _token, methods=["POST"]),
        Route("/{tenant}/oauth2/token", _token, methods=["POST"]),
    ]
