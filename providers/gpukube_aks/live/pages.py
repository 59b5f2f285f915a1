"""Lists of Azure's REST APIs, page by page.

In scope: following the links. Out of scope: what is listed.
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
        """As much of a client as is used; raises for no status."""

        def send_request(self, request: HttpRequest) -> HttpResponse:
            """Send one request."""


_MOST_PAGES: Final = 500


def listed(client: Sender, first: HttpRequest, base: str, keys: tuple[str, str]) -> Iterator[Mapping[str, object]]:
    """Read all pages; a link to another host is not followed: it would get our token.

    Args:
        client: Sends the requests.
        first: Of the first page.
        base: URL that all pages are at.
        keys: Members of a page that have its items, and the link to the next.
    """
    key, link = keys
    request = first
    for _ in range(_MOST_PAGES):
        response = client.send_request(request)
        if response.status_code >= 400:  # noqa: PLR2004 - HTTP's own line
            raise HttpResponseError(response=response)
        page = tree(response.json())
        yield from trees(page, key)
        following = str(page.get(link) or "")
        if not following:
            return
        if not is_same_origin(following, base):
            raise CloudError("the next page of Azure's answer is on another host", code="bad-answer")
        request = HttpRequest("GET", following)
    raise CloudError(f"Azure's answer has more than {_MOST_PAGES} pages", code="bad-answer")
