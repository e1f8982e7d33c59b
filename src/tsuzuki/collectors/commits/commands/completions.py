"""Shell completion for arguments of `tsuzuki commits`."""

from tsuzuki.cli.application import open_application
from tsuzuki.cli.completions import completion
from tsuzuki.cli.invocation import Invocation
from tsuzuki.collectors.commits.commands.service import commits_service


def _projects(invocation: Invocation) -> list[tuple[str, str]]:
    with open_application(invocation, dry_run=True) as application:
        targets = commits_service(application).commits.targets()
        return [(name, "") for name in sorted({str(target.project) for target in targets})]


project_paths = completion(_projects)
