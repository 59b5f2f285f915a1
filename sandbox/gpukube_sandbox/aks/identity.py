"""Authentication: the sandbox's tokens, and the endpoints that issue them.

In scope: the token endpoint of managed identities, the discovery endpoints that `az` needs, the check of bearer tokens.
Out of scope: anything that could accept a real credential.

A token is a JWT signed with the sandbox's secret, because `az` decodes it (its payload needs `tid`). Over plain http,
where Azure's SDKs send no token by default, clients send the secret itself.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import JSONResponse
from starlette.routing import Route

from gpukube_sandbox.aks.answers import arm_error
from gpukube_sandbox.credentials import is_same

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from gpukube_sandbox.aks.answers import Json

    Handler = Callable[[Request], Awaitable[JSONResponse]]

ISSUER = "https://sandbox.gpukube.invalid/"
TENANT = "00000000-0000-0000-0000-0000000000aa"
_LIFETIME_S = 3600
_OBJECT_ID = "00000000-0000-0000-0000-0000000000bb"


def issued_token(resource: str, now: float, secret: str) -> str:
    """Return a JWT for a resource, valid for an hour, and only in the sandbox with that secret."""
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
    parts = ({"alg": "HS256", "typ": "JWT"}, payload)
    signed = ".".join(_encode(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_signature(signed, secret)}"


def is_issued(token: str, secret: str) -> bool:
    """Return whether the sandbox issued a token; its age is ignored, as the clocks differ."""
    signed, _, signature = token.rpartition(".")
    return is_same(signature, _signature(signed, secret))


def is_issued_for(token: str, resource: str, secret: str) -> bool:
    """Return whether the sandbox issued a token for a resource; `resource` may end in a scope's `/.default`."""
    return (
        is_issued(token, secret)
        and str(_payload(token).get("aud", "")).removesuffix("/.default").rstrip("/") == resource
    )


def _payload(token: str) -> Json:
    pieces = token.split(".")
    if len(pieces) != len(("header", "payload", "signature")):
        return {}
    try:
        payload = json.loads(base64.urlsafe_b64decode(pieces[1] + "=" * (-len(pieces[1]) % 4)))
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def check_authorization(header: str | None, secret: str) -> None:
    """Reject a request without a bearer token or with one that the sandbox did not issue.

    Raises:
        ArmError: 401 in ARM's shape, with the challenge that azure-core parses.
    """
    challenge = f'Bearer authorization_uri="https://login.example/{TENANT}", error="invalid_token"'
    headers = {"WWW-Authenticate": challenge}
    if header is None:
        # hashicorp/terraform-provider-azurerm#3612
        message = "Authentication failed. The 'Authorization' header is missing."
        raise arm_error(401, "AuthenticationFailed", message, headers)
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not (is_issued(token, secret) or is_same(token, secret)):
        raise arm_error(401, "InvalidAuthenticationToken", "The access token is invalid.", headers)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _signature(signed: str, secret: str) -> str:
    return _encode(hmac.digest(secret.encode(), signed.encode(), "sha256"))


def _msi_token(secret: str) -> Handler:
    async def answer(request: Request) -> JSONResponse:
        """Act as the App Service form of the managed-identity endpoint: GET with `resource`, X-IDENTITY-HEADER."""
        if not is_same(request.headers.get("x-identity-header", ""), secret):
            return JSONResponse({"statusCode": 401, "message": "X-IDENTITY-HEADER is missing or wrong"}, 401)
        resource, now = request.query_params.get("resource", ""), time.time()
        return JSONResponse(
            {
                "access_token": issued_token(resource, now, secret),
                "expires_on": str(int(now) + _LIFETIME_S),
                "resource": resource,
                "token_type": "Bearer",
                "client_id": _OBJECT_ID,
            }
        )

    return answer


async def _metadata(request: Request) -> JSONResponse:
    """Answer with one object, not a list: `az cloud register` reads this for discovery."""
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


def _token(secret: str) -> Handler:
    async def answer(request: Request) -> JSONResponse:
        """Issue a token for client credentials whose client secret is the sandbox's secret."""
        form = parse_qs((await request.body()).decode("latin-1"))
        if not is_same(form.get("client_secret", [""])[0], secret):
            message = "AADSTS7000215: Invalid client secret provided."
            return JSONResponse({"error": "invalid_client", "error_description": message}, 401)
        token = issued_token("https://management.azure.com/", time.time(), secret)
        return JSONResponse({"access_token": token, "expires_in": _LIFETIME_S, "token_type": "Bearer"})

    return answer


def identity_routes(secret: str) -> list[Route]:
    """Return the routes of the token endpoints and of discovery."""
    token = _token(secret)
    return [
        Route("/msi/token", _msi_token(secret)),
        Route("/metadata/endpoints", _metadata),
        Route("/{tenant}/v2.0/.well-known/openid-configuration", _openid_configuration),
        Route("/{tenant}/.well-known/openid-configuration", _openid_configuration),
        Route("/{tenant}/oauth2/v2.0/token", token, methods=["POST"]),
        Route("/{tenant}/oauth2/token", token, methods=["POST"]),
    ]
