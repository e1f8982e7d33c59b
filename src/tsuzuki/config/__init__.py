"""What a person writes down: `tsuzuki.yaml`, variables and flags, read once and edited with care.

Whatever is wrong in it is told with file, line and column, and in our own words. `edit` changes the
file; everything else here only reads.
"""

from tsuzuki.config import edit
from tsuzuki.config.environment import FILE_NAME, Configuration, load_configuration
from tsuzuki.config.fields import AlsoCalled, Expects, Refusal
from tsuzuki.config.kinds import JobKind
from tsuzuki.config.problems import InvalidFile
from tsuzuki.config.schema import parse_job
from tsuzuki.config.template import write_starter
from tsuzuki.config.urls import redact_url
from tsuzuki.config.variables import expand

__all__ = [
    "FILE_NAME",
    "AlsoCalled",
    "Configuration",
    "Expects",
    "InvalidFile",
    "JobKind",
    "Refusal",
    "edit",
    "expand",
    "load_configuration",
    "parse_job",
    "redact_url",
    "write_starter",
]
