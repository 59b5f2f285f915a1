"""Reads Azure's REST APIs: single resources, and lists page by page.

In scope: following the links. Out of scope: the items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest, HttpResponse

from gpukube.core.jsontree import tree, trees
from gpukube.errors import CloudError
from gpukube_aks.facts.endpoint import is_same_origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    class Sender(Protocol):
        """The part of a client that gpukube uses; it raises for no status."""

        def send_request(self, request: HttpRequest) -> HttpResponse:
            """Send one request."""


_MAX_PAGES: Final = 500


def answer_of(client: Sender, request: HttpRequest) -> Mapping[str, object]:
    """Send a request and return its response; raise for an error."""
    response = client.send_request(request)
    if response.status_code >= 400:  # noqa: PLR2004 - HTTP's own threshold
        raise HttpResponseError(response=response)
    return tree(response.json())


def listed(
    client: Sender, first: HttpRequest, base: str, keys: tuple[str, str] = ("value", "nextLink")
) -> Iterator[Mapping[str, object]]:
    """Yield the items of all pages; raise at a link to another host, which would get our token.

    Args:
        client: Sends the requests.
        first: Request for the first page.
        base: URL below which all pages are.
        keys: Members of a page with its items and with the link to the next page.
    """
    key, link = keys
    request = first
    for _ in range(_MAX_PAGES):
        page = answer_of(client, request)
        yield from trees(page, key)
        following = str(page.get(link) or "")
        if not following:
            return
        if not is_same_origin(following, base):
            raise CloudError("the next page of Azure's response is on another host", code="bad-answer")
        request = HttpRequest("GET", following)
    raise CloudError(f"Azure's response has more than {_MAX_PAGES} pages", code="bad-answer")
