"""Which priority a request has: pure decisions on what an edge knows of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tidegate._errors import ConfigError
from tidegate._names import Priority
from tidegate._native import Classifier, Gates, priority_from


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


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110


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
        ConfigError: One of the proxies is neither, or no header can have this name.
    """

    def __init__(self, name: str, proxies: Iterable[str]) -> None:
        if isinstance(proxies, str):
            proxies = (proxies,)
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"name must be one that a header can have, got {name!r}")
        self.name = name.lower()
        self._networks: list[IPv4Network | IPv6Network] = []
        self._believed: set[str] = set()
        for proxy in proxies:
            if proxy in ("*", "unix"):
                self._believed.add(proxy)
                continue
            try:
                self._networks.append(ip_network(str(proxy)))
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
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped  # how a socket that serves both families shows an IPv4 peer
        return any(address in network for network in self._networks)


PriorityOf: TypeAlias = Callable[[Any], "Priority | str | None"]
Routes: TypeAlias = Mapping[str, Priority | str]
PrioritySource: TypeAlias = (
    "Priority | str | Routes | Classifier | Gates | TrustedHeader | PriorityOf | Sequence[PrioritySource]"
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
    if isinstance(source, Classifier):
        return _by_rules(source)
    if isinstance(source, Gates):  # before others that are mappings
        return _by_rules(source)
    if isinstance(source, Mapping):
        # mypy thinks that it may still be Gates.
        return _by_rules(_of_routes(source))  # type: ignore[arg-type]  # pyright: ignore
    if isinstance(source, TrustedHeader):
        return lambda request: sent_priority(source.value(request))
    if callable(source):
        if inspect.iscoroutinefunction(source):
            raise TypeError(
                f"a function for priority must not be async: the gate is asked at once; got {source!r}"
            )
        return lambda request: sent_priority(source(request.native))
    if isinstance(source, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _first_of([priority_source(each) for each in source])
    raise TypeError(
        "priority must be a priority, a mapping of routes, a Classifier, Gates, a TrustedHeader, a function, "
        f"or a sequence of these, got {source!r}"
    )


def sent_priority(name: Priority | str | None) -> Priority | None:
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


# --- rules ----------------------------------------------------------------------------------------

_Asker = TypeVar("_Asker")
_Look: TypeAlias = Callable[[_Asker], str | None]


def classified(
    source: Classifier | Gates,
    known: Mapping[str, _Look[_Asker]],
    header: Callable[[_Asker, str], str | None],
) -> Callable[[_Asker], Priority | None]:
    """A function from whoever asks to a priority, by rules.

    Args:
        source: The rules, or gates whose file has them: then those that it has at the time. Only what they
            name is looked for. The rules of a file may be for others, too: what cannot be looked for does not
            match.
        known: The attributes that can be looked for, and how.
        header: How "header.NAME" can, by the name in lower case.

    Raises:
        ConfigError: A rule of a classifier names what cannot be looked for, and so would never match.
    """
    if isinstance(source, Classifier):
        return _decider(source, [(name, _look(name, known, header)) for name in source.attributes])
    kept: tuple[Classifier | None, Callable[[_Asker], Priority | None]] = (None, _undecided)

    def decide(asker: _Asker) -> Priority | None:
        nonlocal kept
        current = source.classifier
        classifier, by = kept  # at once: another thread may be here, too
        if current is not classifier:
            by = _decider(current, _looks(current, known, header)) if current else _undecided
            kept = current, by
        return by(asker)

    return decide


def _undecided(_asker: object) -> None:
    return None


def _decider(
    classifier: Classifier, looks: Iterable[tuple[str, _Look[_Asker]]]
) -> Callable[[_Asker], Priority | None]:
    looks = list(looks)
    return lambda asker: classifier.classify({name: look(asker) for name, look in looks})


def _looks(
    classifier: Classifier, known: Mapping[str, _Look[_Asker]], header: Callable[[_Asker, str], str | None]
) -> Iterable[tuple[str, _Look[_Asker]]]:
    for name in classifier.attributes:
        with suppress(ConfigError):
            yield name, _look(name, known, header)


def _look(
    name: str, known: Mapping[str, _Look[_Asker]], header: Callable[[_Asker, str], str | None]
) -> _Look[_Asker]:
    if name in known:
        return known[name]
    kind, _, rest = name.partition(".")
    if kind == "header" and _HEADER_NAME.fullmatch(rest):
        return lambda asker: header(asker, rest)
    raise ConfigError(f"a rule here may name {', '.join(known)} and header.NAME, got {name!r}")


_OF_A_REQUEST: dict[str, _Look[Request]] = {
    "method": attrgetter("method"),
    "path": attrgetter("path"),
    "client": lambda request: request.client or None,
}


def _by_rules(source: Classifier | Gates) -> Decide:
    return classified(source, _OF_A_REQUEST, lambda request, name: request.header(name))


def _of_routes(routes: Routes) -> Classifier:
    return Classifier(
        {"match": _match(route), "priority": priority_from(priority)} for route, priority in routes.items()
    )


def _match(route: str) -> dict[str, str]:
    """What "GET /reports/*" or "/reports/*" matches."""
    method, _, path = route.rpartition(" ")
    if not path.startswith(("/", "*")) or (method and not method.isalpha()):
        raise ConfigError(
            f"a route must be '/path' or 'METHOD /path', with * for any characters, got {route!r}"
        )
    return {"method": method, "path": path} if method else {"path": path}
