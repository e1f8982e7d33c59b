"""Test your own jobs: one inline, or an app with all its jobs on a temporary database.

    def test_it_counts() -> None:
        run = testing.context()
        assert count_words(run, "a b") == Count(2)       # the plain function, with a recorded context
        assert run.logged == ["1: a", "2: b"]

    def test_an_upload_is_converted(tsuzuki_test: TsuzukiTest) -> None:
        jobs = tsuzuki_test(app)                         # from the pytest plug-in, which is installed with Tsuzuki
        upload("a.pdf")
        assert jobs.submitted(convert) == [{"name": "a.pdf"}]
        jobs.drain()                                     # run what is due, here and now

Arguments and results go through JSON as in a real run, so a value that could not be stored fails the test.
"""

from tsuzuki.testing.app import TestedApp, on_temporary_database
from tsuzuki.testing.inline import InlineRun, RecordedContext, context, run_inline

__all__ = [
    "InlineRun",
    "RecordedContext",
    "TestedApp",
    "context",
    "on_temporary_database",
    "run_inline",
]
