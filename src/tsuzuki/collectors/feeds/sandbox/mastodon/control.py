"""The stand-in over HTTP: settings and flags of the account, what is stored, what is left for later."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, get_type_hints

from tsuzuki.sandbox.control import PREFIX
from tsuzuki.sandbox.exchange import Response, Route, StandInRequest, json_response

from .settings import MastodonSettings

if TYPE_CHECKING:
    from .api import Mastodon

ACCOUNT_FLAGS = ("suspended", "token_revoked", "token_can_write")


def settings_routes(mastodon: "Mastodon") -> list[Route]:
    """GET and PATCH /_sandbox/settings, GET /_sandbox/statuses, POST /_sandbox/store_pending."""

    def show(_request: StandInRequest) -> Response:
        return json_response(_shown(mastodon))

    def change(request: StandInRequest) -> Response:
        try:
            _change(mastodon, request.json())
        except (ValueError, TypeError) as problem:
            known = ", ".join(_shown(mastodon))
            message = f"not settings: {problem}. Known settings: {known}"
            return json_response({"message": message}, status=400)
        return show(request)

    def statuses(_request: StandInRequest) -> Response:
        return json_response(
            [
                {**mastodon.entity(one), "text": one.text, "idempotency_key": one.idempotency_key}
                for one in mastodon.statuses
            ]
        )

    def store_pending(_request: StandInRequest) -> Response:
        mastodon.store_pending()
        return Response(status=204)

    return [
        Route("GET", f"{PREFIX}/settings", show),
        Route("PATCH", f"{PREFIX}/settings", change),
        Route("GET", f"{PREFIX}/statuses", statuses),
        Route("POST", f"{PREFIX}/store_pending", store_pending),
    ]


def _shown(mastodon: "Mastodon") -> dict[str, Any]:
    flags = {name: getattr(mastodon.account, name) for name in ACCOUNT_FLAGS}
    return {**asdict(mastodon.settings), **flags}


def _change(mastodon: "Mastodon", values: Any) -> None:
    """Set what is named; a value of another type or an unknown name changes nothing."""
    if not isinstance(values, Mapping):
        raise TypeError("an object is expected")
    flags = {name: value for name, value in values.items() if name in ACCOUNT_FLAGS}
    own = {name: value for name, value in values.items() if name not in flags}
    changed = replace(mastodon.settings, **own)
    kinds = {**get_type_hints(MastodonSettings), **dict.fromkeys(ACCOUNT_FLAGS, bool)}
    for name, value in {**vars(changed), **flags}.items():
        if not isinstance(value, kinds[name]):
            raise TypeError(f"{name} cannot be {value!r}")
    for name, value in vars(changed).items():
        setattr(mastodon.settings, name, value)
    for name, value in flags.items():
        setattr(mastodon.account, name, value)
