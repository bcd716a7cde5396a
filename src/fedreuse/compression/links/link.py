"""The registry of links, and the parsing of a link or of a codec, which gets a plain link."""

from __future__ import annotations

from collections.abc import Mapping

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.core.errors import ConfigError, suggest
from fedreuse.core.method import Link
from fedreuse.core.registry import Registry, load_object

__all__ = ["links", "parse_link"]

links: Registry[Link] = Registry("links", "fedreuse.compression.links", base=Link)


def parse_link(spec: object, where: str) -> Link:
    """Parse a link, or a codec, which gets a plain link; `packed` is both, and a link if it has the key `link`."""
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if not isinstance(name, str):
        raise ConfigError(f"{where}: a name is missing, for example {{name: top_k, ratio: 0.2}}; got {spec!r}")
    if _is_codec(name, where) and not _is_link(spec):
        plain = links.get("plain", where)
        return plain(codecs.parse(spec, where))  # type: ignore[call-arg]  # `Link` itself has no fields
    if ":" not in name and name not in links.names():
        known = [*links.names(), *codecs.names()]
        raise ConfigError(f"{where}: '{name}' is neither a link nor a codec; {suggest(name, known)}")
    return links.parse(spec, where)


def _is_codec(name: str, where: str) -> bool:
    """Return whether a name is that of a codec: a registered one, or a user's class that derives from `Codec`."""
    if ":" not in name:
        return name in codecs.names()
    target = load_object(name, f"{where}.name")
    return isinstance(target, type) and issubclass(target, Codec)


def _is_link(spec: object) -> bool:
    return isinstance(spec, Mapping) and spec.get("name") in links.names() and "link" in spec
