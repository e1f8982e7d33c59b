"""The errors of the Mastodon API, and the pages that servers before it send."""

from tsuzuki.sandbox.exchange import Response, json_response

GATEWAY_TIMEOUT_PAGE = (
    b"<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n"
    b"<center><h1>504 Gateway Time-out</h1></center>\r\n<hr><center>nginx</center>\r\n"
    b"</body>\r\n</html>\r\n"
)
SERVER_ERROR_PAGE = (
    b"<!DOCTYPE html><html lang='en'><head><title>We're sorry, but something went wrong (500)"
    b"</title></head><body>We're sorry, but something went wrong on our end.</body></html>"
)
HTML = "text/html; charset=utf-8"


class MastodonRefused(Exception):
    """The request is answered with an error."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def error(status: int, message: str) -> Response:
    return json_response({"error": message}, status=status)


def refused(status: int, message: str) -> MastodonRefused:
    return MastodonRefused(error(status, message))


def invalid(message: str) -> MastodonRefused:
    return refused(422, f"Validation failed: {message}")


def not_found() -> MastodonRefused:
    return refused(404, "Record not found")


def try_again() -> Response:
    message = "There was a temporary problem serving your request, please try again"
    return error(503, message)


def server_error() -> Response:
    return Response(status=500, body=SERVER_ERROR_PAGE, content_type=HTML)


def gateway_timeout() -> Response:
    return Response(status=504, body=GATEWAY_TIMEOUT_PAGE, content_type=HTML)
