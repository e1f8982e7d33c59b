"""Answers by rule: what a model says is computed from the page it is given and from the schema asked for.

The page is what stands between the longest pair of tags in the user's text (`<page>…</page>`) with more than a link
in it, or all of that text. Its verdict is `not_ready` if it has a word of NOT_READY, `not_worth` with one of
NOT_WORTH, else `worth`. An enum of the schema is filled by the verdict, a string with the first sentences. The same
request always gets the same answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Schema = Mapping[str, Any]

NOT_READY = ("準備中", "coming soon")
NOT_WORTH = ("人事異動", "personnel")
VERDICT_PATTERNS = {
    "not_ready": r"not.?ready|pending|wait",
    "not_worth": r"not.?(worth|valuable|relevant)|skip|reject|^no$",
    "worth": r"^(worth|valuable|relevant|accept|yes)",
}
BAD_ENUM_VALUE = "perhaps"
LINK = re.compile(r"https?://\S+")
SENTENCES = 2
SUMMARY_CHARACTERS_MAX = 200
LOOKED_AT_CHARACTERS = 10_000
"""Sentences are looked for in the start of a page."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What a request says to the model."""

    instructions: str = ""
    text: str = ""
    """What the user says, with the text of attached documents."""

    @property
    def whole(self) -> str:
        return f"{self.instructions}\n{self.text}"

    @cached_property
    def page(self) -> str:
        blocks = re.findall(r"<([A-Za-z][\w-]*)[^>]*>(.*?)</\1>", self.text, flags=re.DOTALL)
        texts = [inside for _, inside in blocks if not LINK.fullmatch(inside.strip())]
        longest = max(texts, key=len, default=self.text)
        return re.sub(r"<[^>]*>", " ", longest).strip()

    @cached_property
    def verdict(self) -> str:
        page = self.page.lower()
        if any(word in page for word in NOT_READY):
            return "not_ready"
        return "not_worth" if any(word in page for word in NOT_WORTH) else "worth"

    @cached_property
    def language(self) -> str:
        return "ja" if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", self.page) else "en"

    @cached_property
    def summary(self) -> str:
        """The first sentences of the page."""
        sentences = re.split(
            r"(?<=[。\uff01\uff1f])|(?<=[.!?])\s+|\n+", self.page[:LOOKED_AT_CHARACTERS]
        )
        found = [sentence.strip() for sentence in sentences if sentence.strip()][:SENTENCES]
        joint = "" if self.language == "ja" else " "
        return joint.join(found)[:SUMMARY_CHARACTERS_MAX]


def answer(prompt: Prompt, schema: Schema | None) -> str:
    """The text a model answers with: JSON that obeys the schema, or the summary."""
    if schema is None:
        return prompt.summary
    return json.dumps(_value(prompt, schema, schema, ""), ensure_ascii=False)


def answer_with_bad_enum(prompt: Prompt, schema: Schema | None) -> str:
    """JSON of the right form in which each enum has a value that it does not list."""
    text = json.dumps(schema or {}, ensure_ascii=False)
    spoiled: Schema = _with_enums(json.loads(text), [BAD_ENUM_VALUE])
    return answer(prompt, spoiled if schema is not None else None)


def text_around(text: str) -> str:
    """An answer that says more than was asked for."""
    return f"Here is the JSON you asked for:\n```json\n{text}\n```"


def token_count(text: str) -> int:
    """About what tokenizers count: four ASCII characters to a token, any other character alone."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 4) + len(text) - ascii_count


def first_tokens(text: str, count: int) -> str:
    """The start of a text that is worth so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if token_count(text[:middle]) <= count else (low, middle - 1)
    return text[:low]


def _value(prompt: Prompt, schema: Schema, root: Schema, name: str) -> Any:
    schema = _resolved(schema, root)
    kind = _type(schema)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return _of_enum(prompt, schema["enum"], name)
    if kind == "object":
        properties = schema.get("properties", {})
        return {key: _value(prompt, one, root, key) for key, one in properties.items()}
    if kind == "array":
        count = int(schema.get("minItems", 0))
        return [_value(prompt, schema.get("items", {}), root, name)] * count
    number = schema.get("minimum", 0)
    plain = {
        "boolean": prompt.verdict == "worth",
        "integer": number,
        "number": number,
        "null": None,
    }
    return plain[kind] if kind in plain else _text(prompt, schema, name)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema behind references and alternatives; of alternatives the first that is not null."""
    while True:
        if "$ref" in schema:
            target: Any = root
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step]
            schema = target
            continue
        choices = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if key in schema), None)
        if choices is None:
            return schema
        schema = next((one for one in choices if _type(one) != "null"), choices[0])


def _type(schema: Schema) -> str:
    named = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(named, list):
        named = next((one for one in named if one != "null"), "null")
    return str(named).lower()


def _of_enum(prompt: Prompt, values: Sequence[Any], name: str) -> Any:
    if "lang" in name.lower():
        return prompt.language if prompt.language in values else values[0]
    pattern = re.compile(VERDICT_PATTERNS[prompt.verdict], re.IGNORECASE)
    return next((value for value in values if pattern.search(str(value))), values[0])


def _text(prompt: Prompt, schema: Schema, name: str) -> str:
    match name.lower():
        case "language" | "lang":
            text = prompt.language
        case "title" | "headline":
            text = prompt.page.partition("\n")[0]
        case "reason":
            text = f"The page is {prompt.verdict.replace('_', ' ')}."
        case _:
            text = prompt.summary
    return text[: int(schema.get("maxLength", SUMMARY_CHARACTERS_MAX))]


def _with_enums(schema: Any, values: list[str]) -> Any:
    if isinstance(schema, list):
        return [_with_enums(one, values) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: values if key == "enum" and isinstance(one, list) else _with_enums(one, values)
        for key, one in schema.items()
    }
