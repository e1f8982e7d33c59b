"""OpenAPI links: which requests can follow a response, with values from it.

Programs use them to get from an object they created to its operations, and tests follow them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class OperationLink(NamedTuple):
    """After `source` answered `status`, `target` can be asked with these parameters."""

    source: str
    status: int
    target: str
    parameters: Mapping[str, str]


def _links(
    source: str, status: int, parameters: Mapping[str, str], *targets: str
) -> list[OperationLink]:
    return [OperationLink(source, status, target, parameters) for target in targets]


_OF_RUN = (
    "get_run",
    "run_history",
    "run_logs",
    "run_logs_text",
    "explain_run",
    "run_stack",
    "cancel_run",
    "retry_run",
)
LINKS = (
    *_links(
        "create_job",
        201,
        {"name": "$response.body#/name"},
        "get_job",
        "edit_job",
        "enable_job",
        "disable_job",
        "explain_job",
        "start_run",
        "delete_job",
    ),
    *_links(
        "edit_job",
        200,
        {"name": "$response.body#/name", "if-match": "$response.header.etag"},
        "delete_job",
    ),
    *_links("start_run", 201, {"run_id": "$response.body#/id"}, *_OF_RUN),
    *_links("retry_run", 201, {"run_id": "$response.body#/id"}, "get_run", "cancel_run"),
    *_links(
        "preview_bulk",
        201,
        {"bulk_id": "$response.body#/id"},
        "get_bulk",
        "confirm_bulk",
        "bulk_results",
    ),
    *_links("confirm_bulk", 202, {"bulk_id": "$response.body#/id"}, "get_bulk", "stop_bulk"),
    *_links("confirm_bulk", 202, {"run_id": "$response.body#/run_id"}, "get_run", "cancel_run"),
    *_links("create_token", 201, {"token_id": "$response.body#/id"}, "revoke_token"),
    *_links(
        "add_user",
        201,
        {"name": "$response.body#/name"},
        "get_user",
        "change_user",
        "set_password",
        "remove_user",
    ),
    *_links(
        "add_target",
        201,
        {"project": "$response.body#/project_id", "branch": "$response.body#/branch"},
        "remove_target",
    ),
    *_links(
        "start_collection",
        202,
        {"collection_id": "$response.body#/run_id"},
        "get_collection",
        "cancel_collection",
        "retry_collection",
    ),
    *_links("start_build", 202, {"build_id": "$response.body#/id"}, "get_build"),
)


def add_links(document: dict[str, Any]) -> None:
    """Write the links into the answers of a document. Raises `KeyError` for an answer that is not there."""
    operations = {
        operation["operationId"]: operation
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    for link in LINKS:
        answer = operations[link.source]["responses"][str(link.status)]
        answer.setdefault("links", {})[link.target] = {
            "operationId": operations[link.target]["operationId"],
            "parameters": dict(link.parameters),
        }
