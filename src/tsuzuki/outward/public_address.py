"""Public addresses: which addresses of the internet a download may connect to.

An address that is not global unicast is refused. So is one that carries an IPv4 address inside (mapped, NAT64, 6to4,
Teredo), because what it leads to is decided by a translator, and the addresses where clouds hand out credentials.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_REFUSED = {
    "unspecified": "0.0.0.0/8 ::/128",
    "loopback": "127.0.0.0/8 ::1/128",
    "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
    "link-local": "169.254.0.0/16 fe80::/10",
    "shared by a carrier's customers": "100.64.0.0/10",
    "cloud metadata": "168.63.129.16/32",
    "multicast": "224.0.0.0/4 ff00::/8",
    "IPv4-mapped": "::ffff:0:0/96 ::ffff:0:0:0/96 ::/96",
    "NAT64": "64:ff9b::/96 64:ff9b:1::/48",
    "6to4": "192.88.99.0/24 2002::/16",
    "Teredo": "2001::/32",
    "reserved": "192.0.0.0/24 192.0.2.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 "
    "2001::/23 2001:db8::/32 3fff::/20",
}
_NETWORKS = [
    (ip_network(network), kind)
    for kind, networks in _REFUSED.items()
    for network in networks.split()
]
_GLOBAL_UNICAST = IPv6Network("2000::/3")


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as, or None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def why_not_public(address: str) -> str | None:
    """The kind of an address that no download may connect to, or None if it is public."""
    parsed = ip_address(address)
    for network, kind in _NETWORKS:
        if _contains(network, parsed):
            return kind
    if parsed.version == 6 and parsed not in _GLOBAL_UNICAST:
        return "reserved"
    return None if parsed.is_global else "reserved"


def _contains(network: IPv4Network | IPv6Network, address: IPv4Address | IPv6Address) -> bool:
    return network.version == address.version and address in network
