"""Tsuzuki in a Python program: define jobs, submit runs and wait for results.

Run it with `python examples/library.py`.
"""

import tempfile
from pathlib import Path

from tsuzuki import RunContext, Tsuzuki

folder = Path(tempfile.mkdtemp(prefix="tsuzuki-example-"))
app = Tsuzuki(f"sqlite:///{folder}/example.db")


@app.job(max_retries=3, backoff={"initial": "1s"})
def count_words(run: RunContext, text: str) -> dict[str, int]:
    """Count words, report progress, and return JSON."""
    words = text.split()
    for number, word in enumerate(words, start=1):
        run.progress(number, len(words))
        run.log(f"{number}: {word}")
    return {"words": len(words)}


@app.job(on_event="page.saved")
async def index_page(run: RunContext) -> None:
    """Runs when `page.saved` is emitted; the payload is in `run.event`."""
    run.log(f"indexing {run.event['page']}")


def main() -> None:
    with app, app.running(capacity=4):
        handle = app.submit("count_words", {"text": "what comes next"}, idempotency_key="first")
        print("result:", handle.result(timeout_seconds=30))

        same = app.submit("count_words", {"text": "what comes next"}, idempotency_key="first")
        print("asked twice, run once:", same.id == handle.id)

        # Store your rows and the run that processes them in one transaction: both or neither.
        with app.transaction() as connection:
            connection.exec_driver_sql("CREATE TABLE pages (name TEXT)")
            connection.exec_driver_sql("INSERT INTO pages VALUES ('home')")
            later = app.submit("count_words", {"text": "home sweet home"}, connection=connection)
        print("in my own transaction:", later.result(timeout_seconds=30))

        app.emit("page.saved", {"page": "home"}, dedupe_key="home-1")


if __name__ == "__main__":
    main()
