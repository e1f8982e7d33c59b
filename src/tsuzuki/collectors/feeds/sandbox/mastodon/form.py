"""The parameters of a request: a form, a form with files, or JSON; those of the query with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qsl

from tsuzuki.sandbox.exchange import StandInRequest

from .errors import refused

FALSE = frozenset({"", "0", "f", "false", "off", "none", "null"})


@dataclass(frozen=True, kw_only=True)
class UploadedFile:
    mime_type: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class MastodonForm:
    """Named values; those of a name that ends with `[]` are a list under the name without it."""

    values: Mapping[str, Any]
    files: Mapping[str, UploadedFile] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return "" if value is None else str(value)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() not in FALSE

    def number(self, name: str) -> int | None:
        """As Ruby reads a number: what is none is 0."""
        text = self.text(name)
        if not text:
            return None
        return int(text) if text.isdecimal() else 0

    def numbers(self, name: str) -> tuple[int, ...]:
        found = self.values.get(name) or ()
        return tuple(int(one) for one in found if str(one).isdecimal())


def form_of(request: StandInRequest) -> MastodonForm:
    pairs = parse_qsl(request.query_text, keep_blank_values=True)
    kind = request.headers.get_content_type() if request.body else ""
    if kind == "application/json":
        return _json_form(request, pairs)
    if kind == "multipart/form-data":
        return _form_with_files(request, pairs)
    text = request.body.decode(errors="replace")
    return MastodonForm(values=_collected([*pairs, *parse_qsl(text, keep_blank_values=True)]))


def _json_form(request: StandInRequest, pairs: list[tuple[str, str]]) -> MastodonForm:
    try:
        values = request.json()
    except ValueError as problem:
        raise refused(400, "There was an error parsing the request body") from problem
    if not isinstance(values, dict):
        raise refused(400, "There was an error parsing the request body")
    return MastodonForm(values={**_collected(pairs), **values})


def _form_with_files(request: StandInRequest, pairs: list[tuple[str, str]]) -> MastodonForm:
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    files = {}
    for part in BytesParser().parsebytes(head + request.body).walk():
        name = part.get_param("name", header="Content-Disposition")
        data = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(data, bytes):
            continue
        if part.get_filename() is None:
            pairs.append((name, data.decode(errors="replace")))
        else:
            files[name] = UploadedFile(mime_type=part.get_content_type(), data=data)
    return MastodonForm(values=_collected(pairs), files=files)


def _collected(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name.endswith("[]"):
            values.setdefault(name.removesuffix("[]"), []).append(value)
        else:
            values[name] = value
    return values
