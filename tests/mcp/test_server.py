"""The server as a client of the official SDK sees it: over stdio, with the new protocol and the older handshake."""

from pathlib import Path

from support.mcp_session import Session, stdio_session

LISTED = [
    "code_search",
    "code_read",
    "code_references",
    "code_outline",
    "code_map",
    "code_index_build",
    "code_index_status",
]


def test_the_tools_are_listed_in_a_fixed_order(session: Session) -> None:
    assert [one.name for one in session.run(session.client.list_tools()).tools] == LISTED


def test_three_tools_ask_to_be_loaded_from_the_start(session: Session) -> None:
    tools = session.run(session.client.list_tools()).tools
    assert [one.name for one in tools if one.meta] == LISTED[:3]
    assert all(one.meta in (None, {"anthropic/alwaysLoad": True}) for one in tools)


def test_only_a_build_changes_anything(session: Session) -> None:
    tools = session.run(session.client.list_tools()).tools
    changing = [
        one.name for one in tools if not (one.annotations and one.annotations.read_only_hint)
    ]
    assert changing == ["code_index_build"]


def test_the_first_question_about_a_tree_builds_its_index(session: Session) -> None:
    result = session.call("code_search", {"query": "Cart"})
    assert not result.is_error
    assert "shop/cart.py:6-14 class Cart" in result.content[0].text


def test_either_channel_alone_is_complete(session: Session) -> None:
    result = session.call("code_references", {"name": "shop/sums.py:total"})
    header, _, text = result.content[0].text.partition("\n")
    told = result.structured_content
    assert told["text"] == text
    assert {"index", "total", "shown", "cursor", "text"} <= told.keys()
    assert {"state", "at", "head", "pending", "reread"} <= told["index"].keys()
    assert f"{told['shown']} of {told['total']} shown" in header
    assert f"index {told['index']['state']}" in header
    assert told["index"]["at"] in header


def test_a_client_sees_the_error_as_text_of_the_answer(session: Session) -> None:
    result = session.call("code_search", {"qury": "Cart"})
    assert result.is_error
    assert 'Did you mean "query"?' in result.content[0].text
    assert result.structured_content is None


def test_an_unknown_tool_is_answered_with_the_known_ones(session: Session) -> None:
    result = session.call("code_find", {})
    assert result.is_error
    assert "Tools: code_search, code_read" in result.content[0].text


def test_a_client_of_the_stateless_protocol_is_served(session: Session) -> None:
    assert session.client.protocol_version == "2026-07-28"
    assert len((session.client.instructions or "").splitlines()) == 5


def test_a_client_that_shakes_hands_is_served(tree: Path, index_folder: Path) -> None:
    older = stdio_session(tree, index_folder, "legacy")
    try:
        assert (older.client.protocol_version or "") < "2026-07-28"
        assert [one.name for one in older.run(older.client.list_tools()).tools] == LISTED
        assert not older.call("code_read", {"symbols": ["Cart/add"]}).is_error
        assert len((older.client.instructions or "").splitlines()) == 5
    finally:
        older.close()
