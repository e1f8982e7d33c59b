"""Configuration: `tsuzuki.yaml`, environment variables and flags.

`load_configuration` reads them, `ConfigEditor` changes the jobs in the file. An error in the file has line
and column and a hint. Imports go one way: `load` and `edit`, then `schema`, `yaml`, `environment`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsuzuki.config.edit import ConfigEditor
    from tsuzuki.config.environment.expansion import expand
    from tsuzuki.config.job_patch import Changes, Key, patched
    from tsuzuki.config.load import Configuration, UnsetVariable, load_configuration
    from tsuzuki.config.location import FILE_NAME, FILE_VARIABLE
    from tsuzuki.config.schema.field_types import Expects, InvalidValue, VariableAlias
    from tsuzuki.config.schema.job_body import body_of, body_text
    from tsuzuki.config.schema.job_kinds import JobKind, SectionReader
    from tsuzuki.config.schema.jobs import parse_job, problem_at
    from tsuzuki.config.schema.problems import InvalidFile
    from tsuzuki.config.schema.sections import SectionKey
    from tsuzuki.config.schema.webhooks import Webhook
    from tsuzuki.config.starter_file import schema_text, write_starter
    from tsuzuki.config.yaml.document import parse_value

__all__ = [
    "FILE_NAME",
    "FILE_VARIABLE",
    "Changes",
    "ConfigEditor",
    "Configuration",
    "Expects",
    "InvalidFile",
    "InvalidValue",
    "JobKind",
    "Key",
    "SectionKey",
    "SectionReader",
    "UnsetVariable",
    "VariableAlias",
    "Webhook",
    "body_of",
    "body_text",
    "expand",
    "load_configuration",
    "parse_job",
    "parse_value",
    "patched",
    "problem_at",
    "schema_text",
    "write_starter",
]

# Loaded when first asked for: a command that reads a parsed file must not wait for the parser.
_HOMES = {
    "FILE_NAME": "location",
    "FILE_VARIABLE": "location",
    "Changes": "job_patch",
    "ConfigEditor": "edit",
    "Configuration": "load",
    "SectionKey": "schema.sections",
    "Expects": "schema.field_types",
    "InvalidFile": "schema.problems",
    "InvalidValue": "schema.field_types",
    "JobKind": "schema.job_kinds",
    "Key": "job_patch",
    "SectionReader": "schema.job_kinds",
    "UnsetVariable": "load",
    "VariableAlias": "schema.field_types",
    "Webhook": "schema.webhooks",
    "body_of": "schema.job_body",
    "body_text": "schema.job_body",
    "expand": "environment.expansion",
    "load_configuration": "load",
    "parse_job": "schema.jobs",
    "parse_value": "yaml.document",
    "patched": "job_patch",
    "problem_at": "schema.jobs",
    "schema_text": "starter_file",
    "write_starter": "starter_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tsuzuki.config' has no attribute {name!r}")
    return getattr(import_module(f"tsuzuki.config.{_HOMES[name]}"), name)
