"""Which priority a request has: pure decisions on what an edge knows of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple, TypeAlias

from tidegate._errors import ConfigError
from tidegate._names import Priority
from tidegate._native import priority_from


class Request(NamedTuple):
    """What an edge knows of a request."""

    method: str
    path: str
    """Decoded, without the prefix under which the application is mounted."""
    header: Callable[[str], str | None]
    """The value of a header by its lower-case name; several are joined by commas."""
    client: str | None
    """The address of whoever is connected; None where it has none, as on a Unix socket."""
    native: Any
    """The framework's own request: an ASGI scope, a WSGI environ, a Django request."""


class TrustedHeader:
    """A priority that a proxy states in a header, believed only if it comes from the proxy.

    The client's address is what the server says it is. A server that replaces it by what
    ``X-Forwarded-For`` names (uvicorn does by default, for proxies on the same host) hides the proxy: then
    say "*", and have the proxy overwrite the header.

    Args:
        name: The header, such as "X-Request-Priority".
        proxies: Addresses and networks ("10.0.0.0/8") that are believed; "unix" stands for whoever has no
            address, "*" for everybody, where only the proxy can reach this service.

    Raises:
        ConfigError: One of the proxies is neither.
    """

    def __init__(self, name: str, proxies: Iterable[str]) -> None:
        if isinstance(proxies, str):
            proxies = (proxies,)
        self.name = name.lower()
        self._networks: list[IPv4Network | IPv6Network] = []
        self._believed: set[str] = set()
        for proxy in proxies:
            if proxy in ("*", "unix"):
                self._believed.add(proxy)
                continue
            try:
                self._networks.append(ip_network(proxy))
            except ValueError as error:
                raise ConfigError(f"proxies must be addresses, networks, 'unix' or '*': {error}") from None

    def value(self, request: Request) -> str | None:
        """What the header says, if it is there and believed."""
        return request.header(self.name) if self._believes(request.client) else None

    def _believes(self, client: str | None) -> bool:
        if "*" in self._believed:
            return True
        if not client:
            return "unix" in self._believed
        try:
            address = ip_address(client)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


PriorityOf: TypeAlias = Callable[[Any], "Priority | str | None"]
PrioritySource: TypeAlias = (
    "Priority | str | Mapping[str, Priority | str] | TrustedHeader | PriorityOf | Sequence[PrioritySource]"
)
Decide: TypeAlias = Callable[[Request], Priority | None]


def priority_source(source: PrioritySource | None) -> Decide:
    """A function from request to priority, from whatever an edge is given.

    Raises:
        ConfigError: A priority or a pattern breaks its rule.
        TypeError: It is none of what is taken.
    """
    if source is None:
        return lambda _request: None
    if isinstance(source, str):
        fixed = priority_from(source)
        return lambda _request: fixed
    if isinstance(source, Mapping):
        return _by_route(source)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(source, TrustedHeader):
        return lambda request: _of_a_name(source.value(request))
    if callable(source):
        return lambda request: _of_a_name(source(request.native))
    if isinstance(source, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _first_of([priority_source(each) for each in source])
    raise TypeError(
        "priority must be a priority, a mapping of routes, a TrustedHeader, a function, or a sequence of "
        f"these, got {source!r}"
    )


def _of_a_name(name: Priority | str | None) -> Priority | None:
    """The priority of this name. What is none was sent by a client, and is nobody's privilege."""
    if name is None:
        return None
    try:
        return priority_from(name)
    except ConfigError:
        return Priority.SHEDDABLE


def _first_of(sources: Sequence[Decide]) -> Decide:
    def decide(request: Request) -> Priority | None:
        for source in sources:
            priority = source(request)
            if priority is not None:
                return priority
        return None

    return decide


def _by_route(routes: Mapping[str, Priority | str]) -> Decide:
    rules = [(*_pattern(route), priority_from(priority)) for route, priority in routes.items()]

    def decide(request: Request) -> Priority | None:
        for method, path, priority in rules:
            if method in (None, request.method) and path.fullmatch(request.path):
                return priority
        return None

    return decide


def _pattern(route: str) -> tuple[str | None, re.Pattern[str]]:
    """Method and path of "GET /reports/*", or the path of "/reports/*". ``*`` stands for any characters."""
    method, _, path = route.rpartition(" ")
    if not path.startswith(("/", "*")) or (method and not method.isalpha()):
        raise ConfigError(
            f"a route must be '/path' or 'METHOD /path', with * for any characters, got {route!r}"
        )
    pattern = ".*".join(re.escape(part) for part in path.split("*"))
    return method.upper() or None, re.compile(pattern, re.DOTALL)
