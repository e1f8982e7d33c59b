"""Every route that changes something leaves a line in the audit log, with the name of its caller."""

import hashlib
import hmac
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from collectors.books.stored_mails import add_mail
from collectors.feeds.stored_items import NOON, add_feed, add_item
from support.factories import add_worker, take_lead
from support.git_histories import straight
from support.git_oracle import git
from support.mcp_http import HEADERS
from support.waiting import wait_until
from support.web_client import HttpAnswer, Served, served_application
from tsuzuki.collectors.books.queries import cursors
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.tables import WaitingState
from tsuzuki.model.failure_signature import signature_of
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store import failures
from tsuzuki.store.failures import RunFailure
from tsuzuki.store.sql.database import Database
from tsuzuki.web.documents import openapi_of
from tsuzuki.web.pages.audit_words import audit_words
from tsuzuki.wiring.collectors import audited_types

FILE = """\
webhooks:
  shop: {kind: github, secret: "${SHOP_SECRET}"}
feeds:
  accounts:
    default: {type: file, path: posts.jsonl}
jobs:
  bot:
    type: feeds
    on_event: look
    feeds:
      news: {url: "https://news.example/feed"}
      held: {url: "https://held.example/feed", hold: true}
  novelties: {type: books, queries: ["subject:astronomy"]}
  code: {type: codeindex, roots: [tree]}
"""
PASSWORD = "correct horse battery"
SECRET = "secret of shop"
LATER = NOON + timedelta(days=400)
BODY = b'{"ref": "main"}'


@dataclass(frozen=True, kw_only=True)
class Step:
    """One request, and under which name its change is to be found."""

    operation: str
    method: str
    path: str
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    actor: str = "user:ada"


Story = Generator[Step, HttpAnswer, None]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "indexes"))
    (tmp_path / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "sums.py").write_text("def total(): ...\n", encoding="utf-8")
    straight(tmp_path / "straight.git", 2)
    straight(tmp_path / "remote" / "group" / "one.git", 2)
    with (
        StandIn(gitlab(tmp_path / "remote")) as remote,
        served_application(tmp_path, fixed=False, environ=environ_of(remote)) as served,
    ):
        application = served.application
        application.jobs.apply()
        application.service("commits").commits.add_repository(
            str(tmp_path / "straight.git"), base=tmp_path
        )
        yield served


def environ_of(remote: StandIn) -> dict[str, str]:
    return {
        "SHOP_SECRET": SECRET,
        "TSUZUKI_COMMITS_GITLAB_URL": remote.url,
        "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
    }


def file_of(served: Served) -> Path:
    file = served.application.configuration.file
    assert file is not None
    return file


def database_of(served: Served) -> Database:
    database: Database = served.application.service("books")._database
    return database


def access(served: Served) -> Story:
    code = served.application.setup_codes.create(actor="test").text
    ada = {"name": "ada", "password": PASSWORD}
    yield Step(
        operation="set_up",
        method="POST",
        path="setup",
        body={"code": code, **ada},
        actor="setup code",
    )
    first = yield Step(operation="sign_in", method="POST", path="sign-in", body=ada)
    second = yield Step(operation="sign_in", method="POST", path="sign-in", body=ada)
    session = f"sessions/{first.json['session_id']}"
    assert second.json["session_id"] != first.json["session_id"]
    yield Step(operation="end_session", method="DELETE", path=session)
    bob = {"name": "bob", "password": PASSWORD, "role": "viewer"}
    yield Step(operation="add_user", method="POST", path="users", body=bob)
    yield Step(operation="change_user", method="PATCH", path="users/bob", body={"disabled": True})
    yield Step(
        operation="set_password",
        method="PUT",
        path="users/bob/password",
        body={"password": PASSWORD * 2},
    )
    yield Step(operation="remove_user", method="DELETE", path="users/bob")
    token = {"name": "ci", "role": "viewer"}
    yield Step(operation="create_token", method="POST", path="tokens", body=token)
    yield Step(operation="revoke_token", method="DELETE", path="tokens/ci")


def jobs_and_runs(served: Served) -> Story:
    definition = {"definition": {"command": ["true"]}}
    yield Step(operation="create_job", method="POST", path="jobs", body={"name": "a", **definition})
    yield Step(operation="disable_job", method="POST", path="jobs/a/disable")
    yield Step(operation="enable_job", method="POST", path="jobs/a/enable")
    yield Step(
        operation="edit_job",
        method="PUT",
        path="jobs/a",
        body={"definition": {"command": ["false"]}},
        headers={"If-Match": "*"},
    )
    first = yield Step(operation="start_run", method="POST", path="jobs/a/runs")
    run = f"runs/{first.json['id']}"
    yield Step(operation="cancel_run", method="POST", path=f"{run}/cancel")
    second = yield Step(operation="retry_run", method="POST", path=f"{run}/retry")
    found = {"verb": "cancel", "filter": {"job": ["a"]}}
    preview = yield Step(operation="preview_bulk", method="POST", path="bulk", body=found)
    bulk = f"bulk/{preview.json['id']}"
    yield Step(operation="confirm_bulk", method="POST", path=f"{bulk}/confirm")
    yield Step(operation="stop_bulk", method="POST", path=f"{bulk}/stop")
    second_id = second.json["id"]
    yield Step(operation="cancel_run", method="POST", path=f"runs/{second_id}/cancel")
    group_id, signature = signature_of("handler_failed", "it broke")
    with database_of(served).write() as connection:
        job_id = second.json["job_definition_id"]
        failures.note(connection, [RunFailure(second_id, group_id, job_id, signature)])
    group = f"failures/{group_id}"
    yield Step(operation="retry_failures", method="POST", path=f"{group}/retry")
    yield Step(operation="acknowledge_failures", method="POST", path=f"{group}/acknowledge")
    yield Step(operation="delete_job", method="DELETE", path="jobs/a")


def processes(served: Served) -> Story:
    database = database_of(served)
    for verb in ("drain", "detach"):
        add_worker(database, f"host-{verb}")
        yield Step(operation=f"{verb}_worker", method="POST", path=f"workers/host-{verb}/{verb}")
    take_lead(database, lease_seconds=600)
    yield Step(operation="step_down", method="POST", path="leader/step-down")
    setting = "settings/lease_seconds"
    yield Step(operation="set_setting", method="PUT", path=setting, body={"value": 12})
    yield Step(operation="reset_setting", method="DELETE", path=setting)
    yield Step(operation="emit_event", method="POST", path="events", body={"event_type": "x"})
    digest = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
    yield Step(
        operation="receive_webhook",
        method="POST",
        path="/hooks/shop",
        raw=BODY,
        headers={"X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": "1"},
        actor="webhook:shop",
    )


def commits(served: Served) -> Story:
    target = {"project": "1", "branch": "main"}
    yield Step(operation="add_target", method="POST", path="commits/targets", body=target)
    started = yield Step(operation="start_collection", method="POST", path="commits/collections")
    place = started.headers["location"]
    yield Step(operation="cancel_collection", method="POST", path=f"{place}/cancel")
    again = yield Step(operation="retry_collection", method="POST", path=f"{place}/retry")
    place = again.headers["location"]
    yield Step(operation="cancel_collection", method="POST", path=f"{place}/cancel")
    query = "commits/targets?project=1&branch=main"
    yield Step(operation="remove_target", method="DELETE", path=query)
    yield Step(operation="sync_projects", method="POST", path="commits/projects/sync")
    matching = {"project": "group/one", "patterns": ["ma*"]}
    path = "commits/targets/matching"
    yield Step(operation="add_matching_targets", method="POST", path=path, body=matching)
    repository = file_of(served).parent / "remote" / "group" / "one.git"
    git(repository, "branch", "trunk")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/trunk")
    yield Step(operation="sync_projects", method="POST", path="commits/projects/sync")


def books(served: Served) -> Story:
    with database_of(served).write() as connection:
        key = compute_query_set_hash(["subject:astronomy"])
        cursors.upsert_collect_cursor(connection, "novelties", key, 7, False)
        unsettled = [
            add_mail(connection, f"v{number}", OutboxState.SENDING, OutboxState.UNSETTLED)
            for number in range(2)
        ]
    job = "books/jobs/novelties"
    reset = {"confirm": True}
    yield Step(operation="reset_books_cursors", method="POST", path=f"{job}/reset", body=reset)
    yield Step(operation="collect_books", method="POST", path=f"{job}/collect")
    yield Step(operation="mail_books", method="POST", path=f"{job}/mail")
    arrived, lost = (f"books/mails/{mail_id}" for mail_id in unsettled)
    yield Step(operation="mark_mail_sent", method="POST", path=f"{arrived}/mark-sent")
    yield Step(operation="resend_mail", method="POST", path=f"{lost}/resend")


def feeds(served: Served) -> Story:
    with database_of(served).write() as connection:
        news, held = add_feed(connection), add_feed(connection, "held")
        failed = ItemState(status=ItemStatus.DEFERRED, reason=ItemReason.API_FAILED, retry_count=2)
        pending = ItemState(status=ItemStatus.PENDING)
        put_off, _other = (
            add_item(connection, news, failed, waiting=WaitingState.BACKOFF, not_before=LATER)
            for _ in range(2)
        )
        kept = add_item(connection, held, pending, waiting=WaitingState.APPROVAL)
    path = f"feeds/items/{kept}/approve"
    yield Step(operation="approve_feed_item", method="POST", path=path)
    path = f"feeds/items/{put_off}/requeue"
    yield Step(operation="requeue_feed_item", method="POST", path=path)
    path, reason = "feeds/items/requeue", {"reason": "api_failed"}
    yield Step(operation="requeue_feed_items", method="POST", path=path, body=reason)
    job = "feeds/jobs/bot"
    press = {"name": "press", "url": "https://press.example/feed"}
    added = yield Step(operation="add_feed", method="POST", path=f"{job}/feeds", body=press)
    yield Step(operation="remove_feed", method="DELETE", path=added.headers["location"])
    yield Step(operation="fetch_feeds", method="POST", path=f"{job}/fetch")
    yield Step(operation="process_feeds", method="POST", path=f"{job}/process")


def verifications(_served: Served) -> Story:
    yield Step(operation="start_verification", method="POST", path="verifications", body={})


def builds(_served: Served) -> Story:
    yield Step(operation="start_build", method="POST", path="code/builds")


def indexes(served: Served) -> Story:
    (tree,) = served.application.service("codeindex").find()
    query = f"code/indexes?tree={quote(str(tree.root))}"
    yield Step(operation="remove_index", method="DELETE", path=query)


def file_and_agents(served: Served) -> Story:
    with file_of(served).open("a", encoding="utf-8") as text:
        text.write('  hello: {command: ["true"]}\n')
    yield Step(operation="apply_file", method="POST", path="jobs/apply")
    call = {"name": "run_start", "arguments": {"job": "hello"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    path = "/mcp?tools=runs"
    yield Step(operation="call_tools", method="POST", path=path, body=message, headers=HEADERS)


def sign_out(_served: Served) -> Story:
    yield Step(operation="sign_out", method="POST", path="sign-out")


STORIES = (
    access,
    jobs_and_runs,
    processes,
    commits,
    books,
    feeds,
    verifications,
    builds,
    indexes,
    file_and_agents,
    sign_out,
)


def changing_operations(served: Served) -> set[str]:
    paths = openapi_of(served.server.app)["paths"]
    return {
        operation["operationId"]
        for methods in paths.values()
        for method, operation in methods.items()
        if method != "get"
    }


def test_every_change_leaves_a_line_with_its_actor(served: Served) -> None:
    called, cookie = set(), ""
    for story in STORIES:
        steps = story(served)
        step = next(steps, None)
        while step is not None:
            answer = _changed(served, step, cookie)
            called.add(step.operation)
            if step.operation == "sign_in":
                cookie = answer.headers["set-cookie"].partition(";")[0]
            try:
                step = steps.send(answer)
            except StopIteration:
                step = None
        if story is builds:
            _wait_for_build(served, cookie)
    assert called == changing_operations(served)
    entries = served.application.audit.find(limit=500)
    codes = {code for entry in entries for code in (entry.action, entry.object_type)}
    assert codes | set(audited_types()) <= audit_words().keys()


def _changed(served: Served, step: Step, cookie: str) -> HttpAnswer:
    """The answer to a step, after which there is a new line under its actor, and under no other."""
    audit = served.application.audit
    newest = max((entry.id for entry in audit.find(limit=1)), default=0)
    ours = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    headers = {**({} if not cookie or step.operation == "sign_in" else ours), **step.headers}
    answer = served.client.as_(None).request(
        step.method, step.path, step.body, raw=step.raw, headers=headers
    )
    assert answer.status < 300, (step, answer.body)
    actors = {entry.actor for entry in audit.find(limit=50) if entry.id > newest}
    assert actors == {step.actor}, step
    return answer


def _wait_for_build(served: Served, cookie: str) -> None:
    def has_ended() -> bool:
        status = served.client.as_(None).get("code/status", Cookie=cookie).json
        return status["build"] is None or status["build"]["status"] != "running"

    wait_until(has_ended, "the build has ended")
