"""Dates as feeds write them, with the zones they name."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tsuzuki.collectors.feeds.entries.date_zones import ZONES, ZONES_BY_LANGUAGE
from tsuzuki.collectors.feeds.entries.parse import parse_feed

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
WINTER, SUMMER = (datetime(2026, month, 15, tzinfo=UTC) for month in (1, 7))

PLACES = {
    "UT": "Etc/UTC", "UTC": "Etc/UTC", "GMT": "Etc/UTC", "Z": "Etc/UTC",
    "EST": "America/New_York", "EDT": "America/New_York", "ET": "America/New_York",
    "CST": "America/Chicago", "CDT": "America/Chicago", "CT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "MT": "America/Denver",
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PT": "America/Los_Angeles",
    "NST": "America/St_Johns", "NDT": "America/St_Johns",
    "AST": "America/Halifax", "ADT": "America/Halifax", "AT": "America/Halifax",
    "AKST": "America/Anchorage", "AKDT": "America/Anchorage", "HST": "Pacific/Honolulu",
    "BRT": "America/Sao_Paulo", "ART": "America/Argentina/Buenos_Aires", "CLT": "America/Santiago",
    "CLST": "America/Santiago", "COT": "America/Bogota", "PET": "America/Lima",
    "WET": "Europe/Lisbon", "WEST": "Europe/Lisbon", "BST": "Europe/London",
    "CET": "Europe/Paris", "CEST": "Europe/Paris", "MET": "Europe/Berlin", "MEST": "Europe/Berlin",
    "MEZ": "Europe/Berlin", "MESZ": "Europe/Berlin", "EET": "Europe/Helsinki", "EEST": "Europe/Helsinki",
    "MSK": "Europe/Moscow", "TRT": "Europe/Istanbul", "WAT": "Africa/Lagos", "CAT": "Africa/Maputo",
    "SAST": "Africa/Johannesburg", "EAT": "Africa/Nairobi", "IDT": "Asia/Jerusalem", "IRST": "Asia/Tehran",
    "GST": "Asia/Dubai", "PKT": "Asia/Karachi", "IST": "Asia/Kolkata", "NPT": "Asia/Kathmandu",
    "ICT": "Asia/Bangkok", "WIB": "Asia/Jakarta", "WITA": "Asia/Makassar", "WIT": "Asia/Jayapura",
    "HKT": "Asia/Hong_Kong", "SGT": "Asia/Singapore", "MYT": "Asia/Kuala_Lumpur", "PHT": "Asia/Manila",
    "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "AWST": "Australia/Perth", "ACST": "Australia/Adelaide",
    "ACDT": "Australia/Adelaide", "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney",
    "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
}  # fmt: skip
PLACES_BY_LANGUAGE = {
    ("AST", "ar"): "Asia/Riyadh",
    ("BST", "bn"): "Asia/Dhaka",
    ("CST", "zh"): "Asia/Shanghai",
    ("CST", "zh-CN"): "Asia/Shanghai",
    ("EDT", "en-au"): "Australia/Sydney",
    ("EST", "en-au"): "Australia/Sydney",
    ("EST", "en_AU"): "Australia/Sydney",
    ("IST", "en-ie"): "Europe/Dublin",
    ("IST", "en-IN"): "Asia/Kolkata",
    ("IST", "ga"): "Europe/Dublin",
    ("IST", "he"): "Asia/Jerusalem",
    ("IST", "iw"): "Asia/Jerusalem",
    ("PST", "fil"): "Asia/Manila",
    ("PST", "tl"): "Asia/Manila",
}


def read(said: str, language: str = "en") -> datetime | None:
    body = (
        f"<rss version='2.0'><channel><title>T</title><language>{language}</language><item><title>A</title>"
        f"<link>https://a.example/1</link><pubDate>{said}</pubDate></item></channel></rss>"
    )
    parsed = parse_feed(body.encode(), url="https://a.example/feed", headers={}, now=NOW)
    return parsed.entries[0].published_at


def offset(zone: str, language: str = "en") -> timedelta | None:
    moment = read(f"Tue, 03 Mar 2026 12:00:00 {zone}", language)
    return moment and datetime(2026, 3, 3, 12, tzinfo=UTC) - moment


def offsets_at(place: str) -> set[timedelta | None]:
    return {moment.astimezone(ZoneInfo(place)).utcoffset() for moment in (WINTER, SUMMER)}


@pytest.mark.parametrize(("zone", "place"), PLACES.items())
def test_a_named_zone_has_the_offset_of_its_place(zone: str, place: str) -> None:
    assert offset(zone) in offsets_at(place)
    assert read(f"Tue, 03 Mar 2026 12:00:00 {zone.lower()}") == read(f"2026-03-03 12:00 {zone}")


@pytest.mark.parametrize(("named", "place"), PLACES_BY_LANGUAGE.items())
def test_a_zone_of_several_places_is_read_by_the_language_of_the_feed(
    named: tuple[str, str], place: str
) -> None:
    assert offset(*named) in offsets_at(place)


def test_every_zone_is_checked() -> None:
    assert set(ZONES) == set(PLACES)
    assert set(ZONES_BY_LANGUAGE) <= set(PLACES_BY_LANGUAGE)


@pytest.mark.parametrize("zone", ["XYZ", "NOWHERE", "Q", ""])
def test_an_unknown_zone_is_utc(zone: str) -> None:
    assert offset(zone) == timedelta()


NINE = datetime(2026, 2, 2, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "said",
    [
        "Mon, 02 Feb 2026 09:00:00 JST",
        "Mon, 2 Feb 2026 09:00 JST",
        "02-Feb-2026 09:00:00 JST",
        "Mon, 02 February 2026 09:00:00 jst",
        "Mon, 02 Feb 26 09:00:00 JST",
        "Mon Feb  2 09:00:00 JST 2026",
        "Mon, 02 Feb 2026 9:00 AM JST",
        "Sun, 01 Feb 2026 7:00 PM EST",
        "2026-02-02T09:00:00JST",
        "2026-02-02 09:00:00 JST",
        "2026/02/02 09:00 JST",
        "2026/02/02 09:00:00 +0900",
        "2026/02/02 09:00 GMT+9",
        "2026年2月2日 9時00分 JST",
        "令和8年2月2日 9:00:00 JST",
        "Mon, 02 Feb 2026 09:00:00 +0900",
        "Mon, 02 Feb 2026 09:00:00 +0900 (JST)",
        "Mon, 02 Feb 2026 09:00:00 GMT+09:00",
    ],
)
def test_a_time_in_japan_in_any_form(said: str) -> None:
    assert read(said, "ja") == NINE


@pytest.mark.parametrize(
    "said",
    [
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "Sun, 01 Jan 2017 08:59:60 JST",
        "2016-12-31T23:59:60Z",
        "2016-12-31T23:59:60.5Z",
        "2017-01-01T08:59:60+09:00",
        "2017/01/01 08:59:60 JST",
    ],
)
def test_a_leap_second_is_the_last_second_of_its_minute(said: str) -> None:
    assert read(said) == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("said", ["Sat, 31 Foo 2016 23:59:60 GMT", "JST"])
def test_what_is_no_date_stays_none(said: str) -> None:
    assert read(said) is None
