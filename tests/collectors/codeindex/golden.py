"""Golden files: a source of each language, and beside it what the extractor must find there, as text.

`python -m collectors.codeindex.golden` in the folder of the tests writes the expected files again; read the difference.
"""

from pathlib import Path

from tsuzuki.collectors.codeindex.extract import Extracted, extract

FOLDER = Path(__file__).parent / "golden"


def as_text(extracted: Extracted) -> str:
    rows = ["definitions: kind, path, lines, column, signature, doc"]
    for definition in extracted.definitions:
        path = "/".join(part for part in (definition.container, definition.name) if part)
        place = f"{definition.line}-{definition.end_line}:{definition.column}"
        words = (definition.kind.value, path, place, definition.signature, definition.doc)
        rows.append(" | ".join(words).rstrip(" |"))
    rows += ["", "references: kind, name, place, container"]
    for reference in extracted.references:
        place = f"{reference.line}:{reference.column}"
        words = (reference.kind.value, reference.name, place, reference.container)
        rows.append(" | ".join(words).rstrip(" |"))
    rows += ["", f"errors: {'yes' if extracted.had_errors else 'no'}", ""]
    return "\n".join(rows)


def found_in(language: str) -> str:
    return as_text(extract(language, (FOLDER / f"{language}.source").read_bytes(), seconds_max=30))


if __name__ == "__main__":
    for source in sorted(FOLDER.glob("*.source")):
        source.with_suffix(".expected").write_text(found_in(source.stem), encoding="utf-8")
