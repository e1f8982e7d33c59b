"""The source for the benchmark: every page's bytes are made once, so that serving is cheap.

python -m bench.books.page_server 10000      prints its address, serves until its input ends
"""

import sys

from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, volumes
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.server import StandIn


class Kept:
    """An application that caches the response of each target."""

    def __init__(self, application: GoogleBooks) -> None:
        self._application = application
        self._answers: dict[tuple[str, ...], Response] = {}

    def __call__(self, request: StandInRequest) -> Response:
        key = tuple(request.query.get(name, "") for name in ("q", "startIndex", "maxResults"))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._application(request)
        return answer


def main() -> None:
    with StandIn(Kept(GoogleBooks(catalogue=volumes(int(sys.argv[1]))))) as server:
        print(f"{server.url}/books/v1", flush=True)
        for line in sys.stdin:
            if line.strip() == "count":
                print(server.count(), flush=True)


if __name__ == "__main__":
    main()
