"""The query protocols of AWS: flat form parameters as input, XML as output.

In scope: both directions, and the shapes of errors. Out of scope: the actions themselves.

Sources: botocore serializers and parsers for `ec2` and `query`; docs: AWSEC2 query requests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.eks.wire.answers import AwsError, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMESPACES = {
    "ec2": "http://ec2.amazonaws.com/doc/2016-11-15/",
    "sts": "https://sts.amazonaws.com/doc/2011-06-15/",
    "iam": "https://iam.amazonaws.com/doc/2010-05-08/",
    "autoscaling": "http://autoscaling.amazonaws.com/doc/2011-01-01/",
}


@dataclass(frozen=True, slots=True)
class Member:
    """A structure's member, parsed from query parameters and written as XML.

    Attributes:
        name: Name in the SDK.
        kind: A text (numbers and booleans too), a structure, a list of structures, a list of texts.
        query: Name in a request; the SDK's if empty.
        xml: Name in a response; the SDK's with a lowercase first letter if empty.
        item: Tag of list items in a response.
    """

    name: str
    kind: Literal["text", "structure", "list", "texts"] = "text"
    query: str = ""
    xml: str = ""
    item: str = "item"
    members: tuple[Member, ...] = ()

    @property
    def request_name(self) -> str:
        """Return the name in a request."""
        return self.query or self.name

    @property
    def response_name(self) -> str:
        """Return the name in a response."""
        return self.xml or self.name[0].lower() + self.name[1:]


def read_members(params: Mapping[str, str], prefix: str, members: tuple[Member, ...]) -> Json:
    """Parse a structure from flat parameters.

    Args:
        params: All parameters of the request.
        prefix: Prefix of its parameters, such as "LaunchTemplateData.".
        members: Allowed members.

    Raises:
        AwsError: 400 UnknownParameter for a member that is not in the table.
    """
    found: Json = {}
    below = {key.removeprefix(prefix): value for key, value in params.items() if key.startswith(prefix)}
    known = {member.request_name: member for member in members}
    for key in below:
        if key.partition(".")[0] not in known:
            raise AwsError("UnknownParameter", f"The parameter {prefix}{key} is not recognized")
    for request_name, member in known.items():
        start = f"{prefix}{request_name}"
        if member.kind == "text" and request_name in below:
            found[member.name] = below[request_name]
        elif member.kind == "structure" and any(key.startswith(f"{request_name}.") for key in below):
            found[member.name] = read_members(params, f"{start}.", member.members)
        elif member.kind == "texts" and numbered(params, start):
            found[member.name] = numbered(params, start)
        elif member.kind == "list":
            places = structures(params, start)
            if places:
                found[member.name] = [read_members(params, place, member.members) for place in places]
    return found


def numbered(params: Mapping[str, str], start: str) -> list[str]:
    """Return the texts of a list: `<start>.1`, `<start>.2`, in order."""
    pattern = re.compile(rf"{re.escape(start)}\.(\d+)")
    found = [(int(match[1]), value) for key, value in params.items() if (match := pattern.fullmatch(key))]
    return [value for _, value in sorted(found)]


def structures(params: Mapping[str, str], start: str) -> list[str]:
    """Return the prefixes of a list's structures: `<start>.1.`, `<start>.2.`, in order."""
    pattern = re.compile(rf"{re.escape(start)}\.(\d+)\.")
    numbers = sorted({int(match[1]) for key in params if (match := pattern.match(key))})
    return [f"{start}.{number}." for number in numbers]


def xml_members(value: Json, members: tuple[Member, ...]) -> Json:
    """Return a structure in the form of `to_xml`, with the names of a response."""
    found: Json = {}
    for member in members:
        inner = value.get(member.name)
        if isinstance(inner, list) and member.kind == "list":
            items = [xml_members(item, member.members) for item in inner if isinstance(item, dict)]
            found[member.response_name] = {member.item: items}
        elif isinstance(inner, list):
            found[member.response_name] = {member.item: inner}
        elif isinstance(inner, dict):
            found[member.response_name] = xml_members(inner, member.members)
        elif inner is not None:
            found[member.response_name] = inner
    return found


def to_xml(name: str, value: object) -> str:
    """Return an element: objects nest, lists repeat the element, None is omitted."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(to_xml(name, item) for item in value)
    if isinstance(value, dict):
        return f"<{name}>{''.join(to_xml(key, item) for key, item in value.items())}</{name}>"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{escape(text)}</{name}>"


def when(moment: float) -> str:
    """Return a time in the form of the query protocols."""
    return timestamp(moment).replace("Z", ".000Z")


def xml_answer(service: str, action: str, result: Json, request_id: str) -> bytes:
    """Return the whole response of an action."""
    if service == "ec2":
        inside = to_xml("requestId", request_id) + "".join(to_xml(key, value) for key, value in result.items())
    else:
        inside = to_xml(f"{action}Result", result) + to_xml("ResponseMetadata", {"RequestId": request_id})
    return _document(f'<{action}Response xmlns="{_NAMESPACES[service]}">{inside}</{action}Response>')


def xml_error(service: str, code: str, message: str, status: int, request_id: str) -> bytes:
    """Return the whole response of an error."""
    if service == "ec2":
        error = to_xml("Errors", {"Error": {"Code": code, "Message": message}}) + to_xml("RequestID", request_id)
        return _document(f"<Response>{error}</Response>")
    kind = "Sender" if status < 500 else "Receiver"  # noqa: PLR2004 - cause of the error, by HTTP status class
    error = to_xml("Error", {"Type": kind, "Code": code, "Message": message}) + to_xml("RequestId", request_id)
    namespace = _NAMESPACES.get(service, _NAMESPACES["sts"])
    return _document(f'<ErrorResponse xmlns="{namespace}">{error}</ErrorResponse>')


def _document(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()
