"""Components that no screen of this module's neighbours shows: charts, in a browser, with hostile texts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import Response
from playwright.sync_api import Browser

from support.page_checks import check_page, visitor
from support.page_site import HOSTILE
from support.web_client import Served, served_application
from tsuzuki.model.access import Right
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.rendering import environment, render_page
from tsuzuki.web.pages.route import Screen

TEMPLATE = """\
{% extends "layout.html" %}
{% import "macros/runs.html" as run_macros with context %}
{% block title %}Charts{% endblock %}
{% block content %}
<h1>Charts</h1>
{{ chart.strip("Last runs of " ~ hostile|plain, marks) }}
{{ chart.bars("Outcomes of " ~ hostile|plain, columns, [("good", "Succeeded"), ("bad", "Failed")], id="outcomes") }}
<div class="progress-row">{{ run_macros.progress(run) }}</div>
{% call ui.notice("warn", "note") %}Look at {{ hostile|outside }}{% endcall %}
{% endblock %}
"""

STARTED_AT = datetime(2026, 11, 19, 2, 0, tzinfo=UTC)
RUN = SimpleNamespace(
    id=1,
    progress_processed=71,
    progress_total=900,
    started_at=STARTED_AT,
    progress_at=STARTED_AT + timedelta(seconds=10),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder, fixed=False) as served:
        served.server.app.routes.extend(_charts().routes)
        yield served


def _charts() -> Screen:
    screen = Screen()
    tones = ("good", "bad", "quiet")
    marks = [
        {"label": f"Run {n}: {HOSTILE}", "href": f"/runs/{n}", "tone": tones[n % 3], "part": n / 20}
        for n in range(1, 21)
    ]
    columns = [
        {
            "label": f"{hour}:00",
            "href": f"/runs?window=24h&limit={hour + 1}",
            "parts": [("good", "Succeeded", hour * 7), ("bad", "Failed", hour % 4)],
        }
        for hour in range(24)
    ]

    @screen.page("/charts", right=Right.RUNS_READ, template="")
    def charts(context: Page) -> Response:
        template = environment(context.viewer.language).from_string(TEMPLATE)
        values = {"marks": marks, "columns": columns, "hostile": HOSTILE, "run": RUN}
        return render_page(context.viewer, template, values)

    return screen


def test_charts_have_a_link_per_mark_a_title_and_a_table(chromium: Browser, served: Served) -> None:
    for width, theme in ((1280, "light"), (320, "dark")):
        with visitor(chromium, served.client.url, width=width, theme=theme) as person:
            page = person.open("/charts")
            check_page(page)
            assert page.locator(".strip a title").count() == 20
            assert page.locator(".bars a").count() == 24
            page.locator(".twin summary").click()
            assert page.locator(".twin tbody tr").nth(23).locator("td").first.inner_text() == "161"
            assert page.locator("img").count() == 0
            check_page(page)


def test_progress_has_a_bar_its_rate_and_what_is_left(chromium: Browser, served: Served) -> None:
    with visitor(chromium, served.client.url) as person:
        row = person.open("/charts").locator(".progress-row")
        bar = row.get_by_role("progressbar").bounding_box()
        assert bar is not None
        assert bar["width"] > 300
        assert row.inner_text().split() == "71 / 900 7.1/s · about 1 min 57 s left".split()
