"""Statements that go to the driver as they are written."""

from tsuzuki.store.sql.plain_sql import plain


def test_each_driver_gets_its_own_way_of_naming_a_value() -> None:
    statement = plain("UPDATE t SET a = :a, b = b + :b_2 WHERE c = :a")
    assert statement["sqlite"] == "UPDATE t SET a = :a, b = b + :b_2 WHERE c = :a"
    assert statement["postgresql"] == "UPDATE t SET a = %(a)s, b = b + %(b_2)s WHERE c = %(a)s"


def test_a_colon_in_a_format_or_a_cast_is_no_name() -> None:
    words = "to_char(x::timestamptz, 'YYYY-MM-DD HH24:MI:SS')"
    assert plain(words)["postgresql"] == words
