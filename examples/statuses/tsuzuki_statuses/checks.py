"""`tsuzuki doctor` check: request each account once, changing nothing."""

from tsuzuki.model.check import checked, fault_of
from tsuzuki.model.errors import ConfigurationError
from tsuzuki_statuses.options import Section
from tsuzuki_statuses.source import Mastodon


def checks(context):
    if not context.jobs:
        return
    try:
        section = context.section(Section)
    except ConfigurationError as problem:
        yield fault_of("statuses: section", problem)
        return
    with Mastodon(section) as mastodon:
        for job in context.jobs:
            yield checked(f"statuses: {job.name}", lambda job=job: _asked(mastodon, job, section))


def _asked(mastodon, job, section):
    mastodon.page_after(job.options["account"], None)
    return f"{section.base_url} answers for account {job.options['account']}"
