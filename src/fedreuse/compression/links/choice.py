"""Which link a group takes: the method's own, that one with another codec in it, or the one that is spelt out.

spelt out       {name: plain, codec: top_k}     replaces the method's own link, whatever that is
a codec alone   {name: top_k, ratio: 0.1}       enters the method's own link, where the method is defined over any
                                                codec; travels plainly where the method has no link of its own; is
                                                refused where the link or its codec is what makes the method
packed alone    packed                          codes without loss what the method sends anyway
null                                            the method's own
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedreuse.compression.codecs.codec import Codec, codecs
from fedreuse.compression.codecs.packed import Packed
from fedreuse.compression.links.link import links, parse_link
from fedreuse.compression.links.packed import PackedLink
from fedreuse.compression.links.plain import Plain
from fedreuse.core.errors import ConfigError
from fedreuse.core.method import Link, MethodConfig, methods
from fedreuse.core.registry import Registry, named_plain

__all__ = ["BareCodec", "Direction", "Wanted", "check_one_codec", "choose_links", "parse_wanted"]

Direction = Literal["uplink", "downlink"]


@dataclass(frozen=True)
class BareCodec:
    """A codec where a link is expected; `is_around` is true of `packed` alone, which does not say what it packs."""

    codec: Codec
    is_around: bool = False


Wanted = Link | BareCodec
"""What a configuration asks for: a link, or a codec that has yet to find its link."""


def parse_wanted(spec: object, where: str) -> Wanted:
    """A link by name, or a codec by name."""
    link = parse_link(spec, where)
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if not isinstance(link, Plain) or name not in codecs.names():
        return link
    return BareCodec(link.codec, name == "packed" and not (isinstance(spec, Mapping) and "codec" in spec))


def choose_links(
    method: MethodConfig, wanted: Mapping[str, Wanted], direction: Direction
) -> tuple[MethodConfig, dict[str, Link]]:
    """The links of one direction by group; and the method, whose field `codec` is now the one that entered its link."""
    chosen: dict[str, Link] = {}
    for group, one in wanted.items():
        if isinstance(one, BareCodec):
            method, chosen[group] = _enter(method, direction, group, one)
        else:
            chosen[group] = one
    return method, {**_own_links(method, direction), **chosen}


def check_one_codec(plain: Mapping[str, Any]) -> None:
    """Refuse a configuration, as it was written, whose method names one codec and whose uplink names another."""
    uplink = plain.get("uplink")
    spec = uplink.get("update") if isinstance(uplink, Mapping) else None
    wanted = None if spec is None else parse_wanted(spec, "uplink.update")
    if not isinstance(wanted, BareCodec) or wanted.is_around:
        return
    for place, said in _codecs_said(plain.get("method"), "method"):
        named = codecs.parse(said, place)
        if _unpacked(wanted.codec) != _unpacked(named):
            raise ConfigError(
                f"{place} is {_words(codecs, named)}, but uplink.update is {_words(codecs, wanted.codec)}, and a "
                f"method has one codec; set {place}: null or uplink.update: null"
            )


def _enter(method: MethodConfig, direction: Direction, group: str, bare: BareCodec) -> tuple[MethodConfig, Link]:
    """The method's own link with a codec in it, or a plain one where the method has none."""
    own = _own_links(method, direction).get(group)
    if own is None:
        return method, Plain(bare.codec)
    inner: Codec | None = vars(own).get("codec")
    codec = bare.codec
    if isinstance(codec, Packed) and bare.is_around:
        if inner is None:
            return method, PackedLink(own, codec.least)
        codec = Packed(_unpacked(inner), codec.least)
    changed = method.with_codec(codec) if (direction, group) == ("uplink", "update") else None
    if changed is not None:
        return changed, _own_links(changed, direction)[group]
    if inner is not None and _unpacked(inner) == _unpacked(codec):
        return method, replace(own, codec=codec)  # type: ignore[type-var]  # every link is a dataclass
    raise ConfigError(
        f"{direction}.{group}: the codec {_words(codecs, codec)} conflicts with method {methods.name_of(method)}, "
        f"which is defined by its own link {_words(links, own)}; set {direction}.{group}: null to run the method, or "
        f"spell the link out to run without the method's own: {{name: plain, codec: {_words(codecs, codec)}}}"
    )


def _own_links(method: MethodConfig, direction: Direction) -> Mapping[str, Link]:
    return method.default_uplink if direction == "uplink" else method.default_downlink


def _unpacked(codec: Codec) -> Codec:
    return codec.codec if isinstance(codec, Packed) else codec


def _codecs_said(method: object, place: str) -> Iterator[tuple[str, object]]:
    """Every codec that a method's tree names for its updates, with its place."""
    if isinstance(method, Mapping):
        if method.get("codec") is not None:
            yield f"{place}.codec", method["codec"]
        yield from _codecs_said(method.get("inner"), f"{place}.inner")


def _words(registry: Registry[Any], part: object) -> str:
    """A part on one line, as a configuration writes it."""
    return _inline(named_plain(registry, part))


def _inline(plain: Any) -> str:
    if not isinstance(plain, Mapping):
        return str(plain)
    rest = [f"{key}: {_inline(inner)}" for key, inner in plain.items() if key != "name"]
    return f"{{name: {plain['name']}{''.join(f', {one}' for one in rest)}}}" if rest else str(plain["name"])
