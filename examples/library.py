"""Tsuzuki in a Python program. Run it with `python examples/library.py`."""

import tempfile
from dataclasses import dataclass

from tsuzuki import RunContext, Tsuzuki

app = Tsuzuki(f"sqlite:///{tempfile.mkdtemp(prefix='tsuzuki-example-')}/work.db")


@dataclass
class Count:
    words: int


@app.job(max_retries=3, backoff={"initial": "1s"})
def count_words(run: RunContext, text: str) -> Count:
    words = text.split()
    for number, word in enumerate(words, start=1):
        run.progress(number, len(words))
        run.log(f"{number}: {word}")
    return Count(len(words))


def main() -> None:
    with app, app.running():
        print("result:", count_words.submit("what comes next").result(timeout_seconds=30))

        once = count_words.options(idempotency_key="first")
        print("asked twice, run once:", once.submit("a b").id == once.submit("a b").id)

        with app.transaction() as connection:  # your rows and their run: both or neither
            connection.exec_driver_sql("CREATE TABLE pages (name TEXT)")
            later = count_words.options(connection=connection).submit(text="home sweet home")
        print("in my own transaction:", later.result(timeout_seconds=30).words)


if __name__ == "__main__":
    main()
