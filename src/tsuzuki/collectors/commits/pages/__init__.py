"""The pages of commits: targets, collections, plan, projects and statistics."""

from pathlib import Path

from tsuzuki.model.access import Right
from tsuzuki.web.pages.extension import Pages
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.navigation import MenuEntry

PAGES = Pages(
    folder=Path(__file__).parents[1],
    screens=(
        "tsuzuki.collectors.commits.pages.chart",
        "tsuzuki.collectors.commits.pages.collections",
        "tsuzuki.collectors.commits.pages.commits",
        "tsuzuki.collectors.commits.pages.heads",
        "tsuzuki.collectors.commits.pages.plan",
        "tsuzuki.collectors.commits.pages.projects",
    ),
    icons={
        "commits": '<circle cx="8" cy="8" r="2.500"/><path d="M1.500 8h4m5 0h4"/>',
    },
    menu=(MenuEntry(message("Commits"), "/commits", Right.COLLECTORS_READ, "commits", "c"),),
    audit_words={
        "commits": message("Commits"),
        "commits.collect": message("Collection started"),
        "commits.cancel": message("Collection canceled"),
        "commits.project.add": message("Project added"),
        "commits.project.rename": message("Project renamed"),
        "commits.project.default_branch": message("Default branch changed"),
        "commits.target.add": message("Branch followed"),
        "commits.target.remove": message("Branch no longer followed"),
    },
    run_effects="tsuzuki.collectors.commits.pages.run_effects:run_effects",
)
