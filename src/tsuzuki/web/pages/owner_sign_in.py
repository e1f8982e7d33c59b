"""The page for a browser that is not signed in to a server without users: how to get a link."""

from fastapi import Request, Response

from tsuzuki.web.pages.rendering import render_page
from tsuzuki.web.pages.viewer import viewer_of
from tsuzuki.web.problems import BEARER_CHALLENGE
from tsuzuki.web.security.origins import LOOPBACK_NAMES, host_name

DEFAULT_PORT = "8420"


def owner_sign_in_page(request: Request, *, status: int, is_refused: bool = False) -> Response:
    """`is_refused`: the link that was opened is not valid."""
    values = {"command": _command(request), "is_refused": is_refused}
    headers = {"WWW-Authenticate": BEARER_CHALLENGE} if status == 401 else {}
    template = "screens/owner_sign_in.html"
    return render_page(viewer_of(request), template, values, status=status, headers=headers)


def _command(request: Request) -> str:
    """With the address that the browser knows the server by, if it is not the usual one: there may be a tunnel."""
    address = request.url.netloc
    is_usual = host_name(address) in LOOPBACK_NAMES and address.endswith(f":{DEFAULT_PORT}")
    return "tsuzuki web link" if is_usual else f"tsuzuki web link --listen {address}"
