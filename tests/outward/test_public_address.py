"""Which addresses count as public."""

import pytest

from tsuzuki.outward.public_address import literal_address, why_not_public


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fd00:ec2::254", "private"),
        ("fec0::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("100.64.0.1", "shared by a carrier's customers"),
        ("100.100.100.200", "shared by a carrier's customers"),
        ("168.63.129.16", "cloud metadata"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("ff02::1", "multicast"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::ffff:0:7f00:1", "IPv4-mapped"),
        ("::127.0.0.1", "IPv4-mapped"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b:1::a00:1", "NAT64"),
        ("2002:7f00:1::", "6to4"),
        ("192.88.99.1", "6to4"),
        ("2001::7f00:1", "Teredo"),
        ("192.0.0.192", "reserved"),
        ("192.0.2.1", "reserved"),
        ("198.18.0.1", "reserved"),
        ("198.51.100.7", "reserved"),
        ("203.0.113.7", "reserved"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("100::1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("2001:20::1", "reserved"),
        ("3fff::1", "reserved"),
        ("5f00::1", "reserved"),
        ("4000::1", "reserved"),
    ],
)
def test_an_address_that_is_not_public_is_named_by_its_kind(address: str, kind: str) -> None:
    assert why_not_public(address) == kind


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:2800:21f::1", "2400:cb00::1"],
)
def test_a_public_address_is_public(address: str) -> None:
    assert why_not_public(address) is None


def test_a_name_is_no_address() -> None:
    assert literal_address("127.1") is None
    assert str(literal_address("::1")) == "::1"
