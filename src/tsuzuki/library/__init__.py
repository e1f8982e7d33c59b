"""Tsuzuki inside one's own program: define jobs beside their code, submit runs, wait for results.

    app = Tsuzuki("sqlite:///work.db")

    @app.job(schedule="every 10m", max_retries=3)
    def tidy(run: RunContext, folder: str = ".") -> int:
        ...

    with app.running():
        print(tidy.submit(folder="/tmp").result(timeout_seconds=60))

The same rules hold as everywhere else: what `submit` confirmed survives any crash, and a job defined here
is an ordinary job that the command line and the other processes see.

`program` has the `Tsuzuki` of a program, `job` the jobs it defines, `handle` the runs it submitted.
"""
