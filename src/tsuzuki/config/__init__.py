"""Configuration: `tsuzuki.yaml`, environment variables and flags.

`load_configuration` reads them, `ConfigEditor` changes the jobs in the file. An error in the file has line
and column and a hint. Imports go one way: `load` and `edit`, then `schema`, `yaml`, `environment`.
"""

from tsuzuki.config.edit import ConfigEditor
from tsuzuki.config.environment.expansion import expand
from tsuzuki.config.job_patch import Changes, Key, patched
from tsuzuki.config.load import (
    FILE_NAME,
    FILE_VARIABLE,
    Configuration,
    UnsetVariable,
    load_configuration,
)
from tsuzuki.config.schema.field_types import Expects, InvalidValue, VariableAlias
from tsuzuki.config.schema.job_kinds import JobKind, SectionReader
from tsuzuki.config.schema.jobs import parse_job
from tsuzuki.config.schema.problems import InvalidFile
from tsuzuki.config.schema.sections import Entry
from tsuzuki.config.schema.webhooks import Webhook
from tsuzuki.config.starter_file import write_starter
from tsuzuki.config.yaml.document import parse_value

__all__ = [
    "FILE_NAME",
    "FILE_VARIABLE",
    "Changes",
    "ConfigEditor",
    "Configuration",
    "Entry",
    "Expects",
    "InvalidFile",
    "InvalidValue",
    "JobKind",
    "Key",
    "SectionReader",
    "UnsetVariable",
    "VariableAlias",
    "Webhook",
    "expand",
    "load_configuration",
    "parse_job",
    "parse_value",
    "patched",
    "write_starter",
]
