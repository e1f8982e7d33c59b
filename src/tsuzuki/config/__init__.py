"""What a person writes down: the file `tsuzuki.yaml`, variables and flags, read once and edited with care.

Whatever is wrong in it is told with file, line and column, and in words of ours.
"""

from tsuzuki.config import edit
from tsuzuki.config.environment import FILE_NAME, Configuration, load_configuration
from tsuzuki.config.kinds import JobKind
from tsuzuki.config.schema import parse_job
from tsuzuki.config.template import write_starter
from tsuzuki.config.urls import redact_url
from tsuzuki.config.variables import expand

__all__ = [
    "FILE_NAME",
    "Configuration",
    "JobKind",
    "edit",
    "expand",
    "load_configuration",
    "parse_job",
    "redact_url",
    "write_starter",
]
