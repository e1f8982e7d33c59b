"""Part of `tsuzuki demo`: a section, a job and the stand-in it collects from."""

from tsuzuki.cli.demo.part import DemoPart, DemoServer
from tsuzuki.sandbox.server import StandIn
from tsuzuki_statuses.sandbox import ACCOUNT, Account

POST = (
    """curl -d '{{"text": "It rained."}}' -H 'Content-Type: application/json'"""
    " http://127.0.0.1:{statuses}/_sandbox/statuses"
)


def _servers(_context):
    account = Account()
    return (
        DemoServer(name="statuses", usual_port=8450, make=lambda port: StandIn(account, port=port)),
    )


DEMO = DemoPart(
    section="""\
statuses:
  base_url: http://127.0.0.1:{statuses}
""",
    job=f"""\
  mastodon-news:
    description: Keep the statuses of an account
    type: statuses
    account: "{ACCOUNT}"
    schedule: {{{{every: 1m}}}}
""",
    servers=_servers,
    run_at_start=("mastodon-news",),
    look_at={"/statuses": "the statuses of an account"},
    commands={POST: "post a status, which the next run keeps"},
)
