"""A stand-in for Mastodon, a real database with items, and runs that post without an engine around them.

A run is a stored one, RUNNING and fenced like any other. So a test may end it in the middle, as a crash does.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from support.factories import add_worker, create_run, take_lead
from support.moving_clock import MovingClock
from tsuzuki.collectors.feeds.channels.protocol import PostBody
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.posting.posting import PostOutcome, RunPosting
from tsuzuki.collectors.feeds.posting.settling import SettledPosts, Settling
from tsuzuki.collectors.feeds.queries import posts, unsettled_posts
from tsuzuki.collectors.feeds.queries.posts import ChangedPost, Post
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, Mastodon
from tsuzuki.collectors.feeds.tables import PostKind, feed_posts, feeds, item_details, items
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.output_buffer import OutputBuffer
from tsuzuki.engine.worker.run_io import WorkerRunIO
from tsuzuki.model.job import JobSource, JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import RunRef
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import Reason, RunState
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Assignment, RunEnd
from tsuzuki.store.sql.database import Connection, Database

WORKER = "host-1-aaaa"
JOB = "news"
TIMEOUT = 5.0
LOOK_PAUSES = (60, 300)
"""A post is sent again after two looks that did not find it, after these pauses."""

ON_SQLITE = pytest.mark.parametrize("dialect", ["sqlite"])
"""What depends on the server alone is not tried with each database."""


def link(number: int) -> str:
    """Numbers over a thousand are places of one page."""
    if number > 1000:
        return f"https://www.soumu.go.jp/news/all.html#{number}"
    return f"https://www.soumu.go.jp/news/{number}.html"


def body_of(number: int, text: str = "A summary.") -> PostBody:
    return PostBody(
        text=f"{text}\n\n{link(number)}",
        url=link(number),
        canonical_url=link(number),
        language="ja",
        visibility="unlisted",
    )


@dataclass
class PostingRun:
    """One run under way, and what followed from its posts."""

    fixture: "PostingFixture"
    task: Task
    context: RunContext
    posting: RunPosting
    output: OutputBuffer
    sent: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    freed: list[int] = field(default_factory=list)

    def intend(
        self, number: int, text: str = "A summary.", *, account: str = "default", **options: Any
    ) -> Post:
        item_id = self.fixture.item(number)
        with self.context.transaction() as connection:
            return self.posting.intend(
                connection,
                feed_id=self.fixture.feed_id,
                item_id=item_id,
                account=account,
                body=body_of(number, text),
                **{"content_hash": "hash 1", **options},
            )

    def intend_again(self, post: Post) -> Post:
        with self.context.transaction() as connection:
            return self.posting.intend_again(connection, post)

    def change(self, number: int, kind: PostKind, change: ChangedPost, text: str) -> PostOutcome:
        post = self.intend(number, text, kind=kind, change=change, content_hash=change.content_hash)
        return self.send(post)

    def send(self, post: Post) -> PostOutcome:
        delivery = self.posting.deliver(post)
        with self.context.transaction() as connection:
            outcome = self.posting.store(connection, delivery)
        if outcome.is_first:
            self._note(outcome)
        return outcome

    def post(self, number: int, **options: Any) -> OutboxState:
        return self.send(self.intend(number, **options)).state

    def settle(self) -> SettledPosts:
        """As at the start of a run."""
        database = self.fixture.database
        with self.context.transaction() as connection:
            now = database.now(connection)
            unsettled_posts.note_interrupted(connection, JOB, now=now)
        return Settling(
            run=self.context,
            database=database,
            posting=self.posting,
            on_sent=self._on_sent,
            on_freed=self._on_freed,
        ).settle()

    def settle_after_looks(self) -> SettledPosts:
        """As at the start of the run that looks for the second time after a pause."""
        self.settle()
        for seconds in LOOK_PAUSES:
            self.fixture.clock.advance(seconds)
            settled = self.settle()
        return settled

    def changes(self) -> list[ChangedPost]:
        database = self.fixture.database
        with database.read() as connection:
            now = database.now(connection)
            return self.posting.changes(connection, self.fixture.feed_id, now=now)

    def end(self, state: RunState = RunState.FAILED) -> None:
        """From here on the run is over, as after a crash."""
        self.posting.close()
        reason = None if state is RunState.SUCCEEDED else Reason.HANDLER_FAILED
        end = RunEnd(run=self.task.started, state=state, reason=reason)
        with self.fixture.database.write() as connection:
            assert moves.finish(connection, worker_id=WORKER, ends=[end])

    @property
    def log(self) -> str:
        buffered = self.output.take()
        self.output.put_back(buffered)
        return "\n".join(line.body for _, line in buffered.lines)

    def _on_sent(self, _connection: Connection, post: Post) -> None:
        self.sent.append(post.item_id)

    def _note(self, outcome: PostOutcome) -> None:
        match outcome.state:
            case OutboxState.SENT:
                self.sent.append(outcome.post.item_id)
            case OutboxState.REFUSED | OutboxState.UNSETTLED:
                self.failed.append(outcome.post.item_id)

    def _on_freed(self, _connection: Connection, post: Post) -> None:
        self.freed.append(post.item_id)


@dataclass
class PostingFixture:
    database: Database
    clock: MovingClock
    mastodon: Mastodon
    server: StandIn
    folder: Path
    term: Term
    feed_id: int
    accounts: dict[str, Any]
    open_runs: list[PostingRun] = field(default_factory=list)

    def start(self) -> PostingRun:
        created = create_run(self.database, self._job())
        with self.database.write() as connection:
            assignment = Assignment(run=created, worker_id=WORKER)
            assert moves.assign(connection, term=self.term, assignments=[assignment])
            (assigned,) = runs.get_many(connection, [created.id])
            ref = RunRef(id=assigned.id, version=assigned.version)
            run = moves.start(connection, worker_id=WORKER, runs=[ref])[created.id]
            job = jobs.get_by_name(connection, JOB)
        assert job is not None
        task = Task(run=run, started=run.started, spec=job.spec)
        output = OutputBuffer(clock=self.clock, settings=EngineSettings)
        run_io = WorkerRunIO(database=self.database, output=output, worker_id=lambda: WORKER)
        context = RunContext(task=task, run_io=run_io, clock=self.clock, stop_signal=StopSignal())
        section = FeedsSection.model_validate({"accounts": self.accounts})
        posting = RunPosting(
            run=context, database=self.database, section=section, workspace=self.folder
        )
        started = PostingRun(
            fixture=self, task=task, context=context, posting=posting, output=output
        )
        self.open_runs.append(started)
        return started

    def item(self, number: int) -> int:
        """The item of this number, which is made when it is first asked for."""
        with self.database.write() as connection:
            by_url = select(items.c.id).where(items.c.url == link(number))
            found = connection.execute(by_url).scalar_one_or_none()
            return int(found) if found is not None else self._add_item(connection, number)

    def change_article(self, number: int, content_hash: str) -> None:
        with self.database.write() as connection:
            connection.execute(
                update(item_details)
                .where(item_details.c.canonical_url == link(number))
                .values(content_hash=content_hash, changed_at=self.clock.now())
            )

    def forget(self, number: int) -> None:
        """The post of an item, so that it can be made once more."""
        item_id = self.item(number)
        with self.database.write() as connection:
            connection.execute(delete(feed_posts).where(feed_posts.c.item_id == item_id))

    def state(self, number: int) -> str:
        with self.database.read() as connection:
            by_url = select(items.c.id).where(items.c.url == link(number))
            item_id = connection.execute(by_url).scalar_one()
            post = posts.post_of_item(connection, item_id)
        assert post is not None
        return post.state.value

    def texts(self) -> list[str]:
        return [status.text for status in self.mastodon.statuses]

    def requests(self, method: str, path: str) -> int:
        return sum(
            seen.request.method == method and seen.request.path.rstrip("/").endswith(path)
            for seen in self.server.requests
        )

    def _add_item(self, connection: Connection, number: int) -> int:
        now = self.clock.now()
        row = {
            "url": link(number),
            "title": f"Title {number}",
            "published_at": now,
            "status": 2,
            "retry_count": 0,
            "created_at": now,
            "last_checked_at": now,
        }
        adding = insert(items).values(row).returning(items.c.id)
        item_id = int(connection.execute(adding).scalar_one())
        details = {
            "item_id": item_id,
            "feed_id": self.feed_id,
            "canonical_url": link(number),
            "categories": [],
            "excerpt": "",
            "attachments": [],
            "content_hash": "hash 1",
        }
        connection.execute(insert(item_details).values(details))
        return item_id

    def _job(self) -> int:
        spec = JobSpec(
            name=JOB, handler="feeds", concurrency_policy=ConcurrencyPolicy.ALLOW, options={}
        )
        with self.database.write() as connection:
            job = jobs.get_by_name(connection, JOB)
            return job.id if job else jobs.add(connection, spec, source=JobSource.DATABASE)


def open_posting_fixture(
    database: Database, clock: MovingClock, mastodon: Mastodon, server: StandIn, folder: Path
) -> PostingFixture:
    add_worker(database, WORKER, capacity=1000)
    feed = {
        "job_name": JOB,
        "name": "press",
        "url": "https://www.soumu.go.jp/news.rdf",
        "is_conditional": True,
        "failures": 0,
    }
    with database.write() as connection:
        feed_id = int(
            connection.execute(insert(feeds).values(feed).returning(feeds.c.id)).scalar_one()
        )
    account = {
        "type": "mastodon",
        "base_url": server.url,
        "access_token": TOKEN,
        "timeout": TIMEOUT,
    }
    return PostingFixture(
        database=database,
        clock=clock,
        mastodon=mastodon,
        server=server,
        folder=folder,
        term=take_lead(database, lease_seconds=86_400.0 * 60),
        feed_id=feed_id,
        accounts={"default": account},
    )
