"""Stand-in for Mastodon: one account with paged statuses. It imports nothing of the product but the sandbox."""

from tsuzuki.sandbox.exchange import Route, Router, json_response
from tsuzuki.sandbox.stand_in_kind import StandInKind

ACCOUNT = "109302436954721982"
PAGE_SIZE_MAX = 40
STAND_INS = (
    StandInKind(
        name="statuses",
        title="Mastodon account",
        usual_port=8950,
        start="tsuzuki_statuses.sandbox:start",
    ),
)


class Account:
    """A stand-in account. `POST /_sandbox/statuses` posts; like every stand-in, it has `/_sandbox/faults`."""

    def __init__(self, count=12):
        self._statuses = []
        self.control_routes = [Route("POST", "/_sandbox/statuses", self._post)]
        self._router = Router(
            [Route("GET", "/api/v1/accounts/{account}/statuses", self._page)],
            otherwise=_missing,
        )
        for number in range(1, count + 1):
            self.post(f"Status number {number}")

    def __call__(self, request):
        return self._router(request)

    def post(self, text):
        number = len(self._statuses) + 1
        self._statuses.append(
            {
                "id": str(110_000_000_000_000_000 + number),
                "url": f"https://mastodon.example/@news/{number}",
                "created_at": f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00.000Z",
                "content": f"<p>{text}</p>",
            }
        )
        return self._statuses[-1]

    def _post(self, request):
        return json_response(self.post(request.json()["text"]), status=201)

    def _page(self, request):
        if request.params["account"] != ACCOUNT:
            return _missing(request)
        limit = min(int(request.query.get("limit", 20)), PAGE_SIZE_MAX)
        after = int(request.query.get("min_id", 0))
        newer = [one for one in self._statuses if int(one["id"]) > after][:limit]
        return json_response(newer[::-1])  # Mastodon lists the newest first


def _missing(_request):
    return json_response({"error": "Record not found"}, status=404)


def start(context):
    server = context.serve(Account())
    return {"TSUZUKI_STATUSES_BASE_URL": server.url}
