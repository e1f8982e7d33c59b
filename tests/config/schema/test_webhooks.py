"""The section `webhooks`: every mistake with its place, and no secret in the file or in a message."""

from pathlib import Path

import pytest

from tsuzuki.config import Configuration, InvalidFile, load_configuration
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.webhook_signatures import SECRET_HEADER, WebhookKind

GOOD = "webhooks:\n  shop:\n    kind: gitlab\n    secret: ${SHOP}\n"


def load(folder: Path, text: str, **environ: str) -> Configuration:
    (folder / "tsuzuki.yaml").write_text(text)
    return load_configuration(environ=environ, cwd=folder)


def problems(folder: Path, text: str) -> list[tuple[str, int | None, int | None]]:
    with pytest.raises(InvalidFile) as invalid:
        load(folder, text)
    return [
        (problem.specific_code, problem.place.line, problem.place.column)
        for problem in invalid.value.problems
        if problem.place
    ]


def test_a_webhook_has_a_kind_a_secret_and_an_event(tmp_path: Path) -> None:
    more = "    old_secret: ${OLD}\n    event: shop.changed\n"
    (webhook,) = load(tmp_path, GOOD + more, SHOP="new", OLD="old").webhooks
    assert (webhook.name, webhook.kind, webhook.event) == (
        "shop",
        WebhookKind.GITLAB,
        "shop.changed",
    )
    assert webhook.secrets() == ("new", "old")
    assert "new" not in repr(webhook)
    (plain,) = load(tmp_path, GOOD).webhooks
    assert (plain.event, plain.header) == ("webhook.shop", SECRET_HEADER)


def test_without_the_section_there_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, "jobs: {}\n").webhooks == ()
    assert load(tmp_path, "webhooks:\n").webhooks == ()
    assert load_configuration(environ={}, cwd=tmp_path / "none").webhooks == ()


def test_a_missing_variable_stops_only_its_webhook(tmp_path: Path) -> None:
    configuration = load(tmp_path, GOOD, SHOP="")
    with pytest.raises(ConfigurationError) as empty:
        configuration.webhooks[0].secrets()
    assert empty.value.specific_code == "webhook_secret"
    configuration = load(tmp_path, GOOD)
    assert [variable.name for variable in configuration.unset_variables] == ["SHOP"]
    with pytest.raises(ConfigurationError) as missing:
        configuration.webhooks[0].secrets()
    assert missing.value.specific_code == "variable_missing"


def test_no_command_inherits_the_variable_of_a_secret(tmp_path: Path) -> None:
    assert "SHOP" in load(tmp_path, GOOD, SHOP="new").secret_variables


@pytest.mark.parametrize(
    "written",
    ["hunter2", '"hunter2"', "${SHOP:-hunter2}", "hunter2${SHOP}", "22222", "[hunter2]", "true"],
)
def test_a_secret_that_is_written_out_is_refused_and_not_quoted(
    written: str, tmp_path: Path
) -> None:
    text = GOOD.replace("${SHOP}", written)
    with pytest.raises(InvalidFile) as invalid:
        load(tmp_path, text)
    (problem,) = invalid.value.problems
    assert problem.specific_code == "secret_in_file"
    assert problem.place is not None
    assert (problem.place.line, problem.place.text) == (4, None)
    assert written.strip('"') not in f"{problem.message} {problem.as_dict()}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("webhooks: [shop]\n", ("configuration", 1, 11)),
        ("webhooks:\n  shop: gitlab\n", ("configuration", 2, 9)),
        ("webhooks:\n  shop: {kind: gitlab}\n", ("missing_key", 2, 3)),
        ("webhooks:\n  a/b: {kind: gitlab, secret: '${S}'}\n", ("webhook_name", 2, 3)),
        (GOOD.replace("kind: gitlab", "kind: gitlub"), ("configuration", 3, 11)),
        (GOOD + "    evnt: x\n", ("unknown_key", 5, 5)),
        (GOOD + "    header: X-My\n", ("unknown_key", 5, 5)),
        (
            GOOD.replace("kind: gitlab", "kind: header") + "    header: 'a b'\n",
            ("configuration", 5, 13),
        ),
        ("webhook:\n  shop: {}\n", ("unknown_key", 1, 1)),
    ],
)
def test_a_mistake_is_told_with_its_place(
    text: str, expected: tuple[str, int, int], tmp_path: Path
) -> None:
    assert problems(tmp_path, text) == [expected]


def test_the_secret_of_a_webhook_may_be_given_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    configuration = load(tmp_path, GOOD, SHOP_FILE="secret")
    assert configuration.unset_variables == ()
    assert "hunter2" in configuration.webhooks[0].secrets()
