"""The stand-in that the commits add to `tsuzuki sandbox`."""

from pathlib import Path

import click

from tsuzuki.sandbox.stand_in_kind import StandInKind

STAND_INS = (
    StandInKind(
        name="gitlab",
        title="GitLab",
        usual_port=8929,
        start="tsuzuki.collectors.commits.sandbox.gitlab.stand_in:start",
        options=(
            click.Option(
                ["--repositories"],
                type=click.Path(path_type=Path),
                metavar="FOLDER",
                help="Git repositories to serve as GitLab projects (default: a generated demo).",
            ),
            click.Option(
                ["--requests-per-minute"],
                type=click.IntRange(1),
                metavar="N",
                help="Answer 429 above this number of GitLab requests (default: no limit).",
            ),
        ),
    ),
)
