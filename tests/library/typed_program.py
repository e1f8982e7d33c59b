"""A program as type checkers see it: each line with a `wrong` comment is a mistake, and no other is."""

from datetime import UTC, datetime

from tsuzuki import Handle, RunContext, Tsuzuki, current_run

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
app = Tsuzuki("sqlite:///never-opened.db")


@app.job(max_retries=3, schedule="every 10m", backoff={"initial": "1s"})
def tidy(run: RunContext, folder: str = ".") -> int:
    return run.attempt


@app.job
async def greet(run: RunContext, name: str) -> str:
    return name


@app.job("remind-later")
async def remind(when: datetime) -> str:
    return f"{when} {current_run().id}"


@app.job
def split(text: str) -> list[str]:
    return text.split()


def use(*values: object) -> None: ...


async def right() -> None:
    folder: int = tidy.submit(folder="/tmp").result(timeout_seconds=60)
    name: str = await (await greet.submit_async("Ada")).result_async()
    when: Handle[str] = remind.options(idempotency_key="k", delay_seconds=60).submit(NEW_YEAR)
    words: list[Handle[list[str]]] = split.submit_many([split.call("a b"), split.call(text="c")])
    ints: list[Handle[int]] = app.submit_many([tidy.call()])
    called: list[str] = split("a b")
    awaited: str = await remind(NEW_YEAR)
    unknown: object = app.submit("of another program", {"depth": 1}).result()
    use(folder, name, when.id, words, ints, called, awaited, unknown, tidy.run(7).result() + 1)


async def mistakes() -> None:
    tidy.submit(foldr="/tmp")  # wrong
    tidy.submit(7)  # wrong
    greet.submit()  # wrong
    await remind.submit_async("tomorrow")  # wrong
    split.call(["a"])  # wrong
    split.options(idempotncy_key="k")  # wrong
    split.options(priority=1).submit(txt="a")  # wrong
    tidy("/tmp")  # wrong
    result: str = tidy.submit().result()  # wrong
    text: list[Handle[str]] = split.submit_many([split.call("a")])  # wrong
    tidy.submit_many([split.call("a")])  # wrong
    use(result, text)
    with app.running(capcity=3):  # wrong
        pass


@app.job(max_retrys=3)  # wrong
def misspelt() -> None: ...


@app.job(misfire="sometimes")  # wrong
def no_such_choice() -> None: ...
