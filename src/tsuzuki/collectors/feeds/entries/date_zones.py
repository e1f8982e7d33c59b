"""The time zones that dates in feeds name: RFC 822's, and the abbreviations in common use.

An abbreviation that stands for several zones is read by the language of the feed, as `IST`: +02:00 in Hebrew, +01:00 in
Irish, else +05:30. One that is not listed counts as UTC, as RFC 5322 says: the date is then wrong by less than a day,
and the time of the fetch, the other choice, may be wrong by years.
"""

import re
from datetime import timedelta
from types import MappingProxyType

ZONES = MappingProxyType(
    {
        # RFC 822
        "UT": "+00:00", "UTC": "+00:00", "GMT": "+00:00", "Z": "+00:00",
        "EST": "-05:00", "EDT": "-04:00", "CST": "-06:00", "CDT": "-05:00",
        "MST": "-07:00", "MDT": "-06:00", "PST": "-08:00", "PDT": "-07:00",
        # Americas
        "NST": "-03:30", "NDT": "-02:30", "AST": "-04:00", "ADT": "-03:00",
        "AKST": "-09:00", "AKDT": "-08:00", "HST": "-10:00",
        "AT": "-04:00", "ET": "-05:00", "CT": "-06:00", "MT": "-07:00", "PT": "-08:00",
        "BRT": "-03:00", "ART": "-03:00", "CLT": "-04:00", "CLST": "-03:00", "COT": "-05:00", "PET": "-05:00",
        # Europe and Africa
        "WET": "+00:00", "WEST": "+01:00", "BST": "+01:00",
        "CET": "+01:00", "CEST": "+02:00", "MET": "+01:00", "MEST": "+02:00", "MEZ": "+01:00", "MESZ": "+02:00",
        "EET": "+02:00", "EEST": "+03:00", "MSK": "+03:00", "TRT": "+03:00",
        "WAT": "+01:00", "CAT": "+02:00", "SAST": "+02:00", "EAT": "+03:00",
        # Asia
        "IDT": "+03:00", "IRST": "+03:30", "GST": "+04:00", "PKT": "+05:00", "IST": "+05:30", "NPT": "+05:45",
        "ICT": "+07:00", "WIB": "+07:00", "WITA": "+08:00", "WIT": "+09:00",
        "HKT": "+08:00", "SGT": "+08:00", "MYT": "+08:00", "PHT": "+08:00", "JST": "+09:00", "KST": "+09:00",
        # Australia and New Zealand
        "AWST": "+08:00", "ACST": "+09:30", "ACDT": "+10:30", "AEST": "+10:00", "AEDT": "+11:00",
        "NZST": "+12:00", "NZDT": "+13:00",
    }
)  # fmt: skip

ZONES_BY_LANGUAGE = MappingProxyType(
    {
        ("AST", "ar"): "+03:00",
        ("BST", "bn"): "+06:00",
        ("CST", "zh"): "+08:00",
        ("EDT", "en-au"): "+11:00",
        ("EST", "en-au"): "+10:00",
        ("IST", "en-ie"): "+01:00",
        ("IST", "ga"): "+01:00",
        ("IST", "he"): "+02:00",
        ("IST", "iw"): "+02:00",
        ("PST", "fil"): "+08:00",
        ("PST", "tl"): "+08:00",
    }
)
"""Where the language of the feed decides, whole or by its first part."""

ZONE = r"(?:GMT|UTC?)?[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]{1,5}"
_NUMBER = re.compile(r"(?:GMT|UTC?)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)


def offset_of(zone: str | None, language: str) -> timedelta:
    """How far the clocks of a zone are ahead of UTC. `language` is such as `en` or `en-AU`."""
    numbers = _NUMBER.fullmatch(zone or "") or _NUMBER.fullmatch(_written(zone, language))
    if numbers is None:
        return timedelta()
    offset = timedelta(hours=int(numbers[2]), minutes=int(numbers[3] or 0))
    return -offset if numbers[1] == "-" else offset


def _written(zone: str | None, language: str) -> str:
    name, spoken = (zone or "").upper(), language.lower().replace("_", "-")
    for known in (spoken, spoken.partition("-")[0]):
        if (name, known) in ZONES_BY_LANGUAGE:
            return ZONES_BY_LANGUAGE[name, known]
    return ZONES.get(name, "")
