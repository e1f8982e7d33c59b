"""`code_references`: where a symbol is used, and how sure that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, ReferenceLine
from tsuzuki.collectors.codeindex.tools.indexes import index_part, indexes_of
from tsuzuki.collectors.codeindex.tools.texts import listed_texts, places_by_file
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.paging import ItemForm, McpPage, page_answer
from tsuzuki.mcp.tokens import clipped
from tsuzuki.mcp.tool import ToolCall


@dataclass(frozen=True)
class ListedReference:
    """A reference in a list."""

    reference: ReferenceLine

    @property
    def path(self) -> str:
        return self.reference.path

    @property
    def key(self) -> str:
        one = self.reference
        return "\0".join((one.path, one.container, one.kind, one.text, str(one.column)))

    @property
    def sureness(self) -> str:
        one = self.reference
        is_exact = one.confidence.is_exact
        return one.confidence.value if is_exact else f"{one.confidence.value} ({one.definitions})"


def references(call: ToolCall) -> ToolAnswer:
    """Every use; of a name without one, whether it is defined at all."""
    kind = call.get("kind", "all")
    indexes = indexes_of(call.state)
    with indexes.answers(call, indexes.tree(call)) as answers:
        answer = answers.references(
            call.get("name"),
            kinds=() if kind == "all" else (kind,),
            paths=listed_texts(call.get("glob")),
            tests=call.get("tests", True),
        )
        nothing = "" if answer.value.uses else _nothing(answers, call.get("name"))
    uses = [ListedReference(one) for one in answer.value.uses]
    page = McpPage(
        index=index_part(answer.index),
        items=uses,
        forms=_forms(call.budget),
        total=len(uses),
        notes=_notes(uses, answer.value.files_left_out),
        empty=nothing,
    )
    return page_answer(call, page)


def _nothing(answers: CodeAnswers, name: str) -> str:
    told = f"No references to {name!r}."
    if ":" in name:
        return told
    found = answers.search(name, lines=False, limit=1)
    names = found.value.names
    if names and any(one.match.name == "EXACT" for one in names.found):
        return told
    guess = names.found[0].symbol.name_path if names and names.found else found.value.did_you_mean
    return f"{told} It is not defined in this tree.{f' Did you mean {guess!r}?' if guess else ''}"


def _notes(uses: Sequence[ListedReference], files_left_out: int) -> list[str]:
    notes = [_summary(uses)] if uses else []
    if files_left_out:
        notes.append(
            f"Incomplete: {files_left_out} more files mention this name. Narrow the search "
            "with glob."
        )
    return notes


def _summary(uses: Sequence[ListedReference]) -> str:
    """Of all of them, shown or not."""
    exact = sum(one.reference.confidence.is_exact for one in uses)
    files = len({one.path for one in uses})
    return f"{len(uses)} references in {files} files, {exact} exact."


def _forms(budget: int) -> list[ItemForm[ListedReference]]:
    width = min(300, budget)
    return [
        ItemForm("full", lambda shown: "\n".join(_grouped(shown, width, with_text=True))),
        ItemForm(
            "signatures", lambda shown: "\n".join(_grouped(shown, width // 2, with_text=False))
        ),
        ItemForm("names by file", lambda shown: "\n".join(_by_file(shown, width))),
    ]


def _grouped(shown: Sequence[ListedReference], width: int, *, with_text: bool) -> Iterator[str]:
    """By file and enclosing symbol."""
    for path, group in groupby(shown, key=lambda use: use.path):
        in_file = [*group]
        yield f"{clipped(path, width)} ({len(in_file)})"
        for container, inner in groupby(in_file, key=lambda use: use.reference.container):
            uses = [*inner]
            place = f"in {container}" if container else "at the top"
            if not with_text:
                told = ", ".join(
                    f"{one.reference.line} {one.reference.kind} {one.sureness}" for one in uses
                )
                yield f"  {clipped(place, width)}: {told}"
                continue
            yield clipped(f"  {place}", width)
            for one in uses:
                reference = one.reference
                told = f"{reference.line} {reference.kind} {one.sureness}: {reference.text}"
                yield clipped(f"    {told}", width)


def _by_file(shown: Sequence[ListedReference], width: int) -> Iterator[str]:
    return places_by_file(((one.path, str(one.reference.line)) for one in shown), width)
