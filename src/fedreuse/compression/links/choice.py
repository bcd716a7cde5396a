"""The choice of a group's link: the method's own, the method's own with another codec, or a link given in full.

full link       {name: plain, codec: top_k}     replaces the method's own link
codec alone     {name: top_k, ratio: 0.1}       is inserted into the method's own link if the method is defined for any
                                                codec; gets a plain link if the method has none for the group; is
                                                refused if the link or its codec defines the method
packed alone    packed                          losslessly codes what the method's own link sends
null                                            the method's own link
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
    """A codec given instead of a link; `is_around` is true for `packed` without a codec of its own."""

    codec: Codec
    is_around: bool = False


Wanted = Link | BareCodec
"""The request of a configuration: a link, or a codec for which a link is to be chosen."""


def parse_wanted(spec: object, where: str) -> Wanted:
    """Parse a link or a codec."""
    link = parse_link(spec, where)
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if not isinstance(link, Plain) or name not in codecs.names():
        return link
    return BareCodec(link.codec, name == "packed" and not (isinstance(spec, Mapping) and "codec" in spec))


def choose_links(
    method: MethodConfig, wanted: Mapping[str, Wanted], direction: Direction
) -> tuple[MethodConfig, dict[str, Link]]:
    """Return the method, with a codec inserted if one was given, and the links of one direction by group."""
    chosen: dict[str, Link] = {}
    for group, request in wanted.items():
        if isinstance(request, BareCodec):
            method, chosen[group] = _insert(method, direction, group, request)
        else:
            chosen[group] = request
    return method, {**_own_links(method, direction), **chosen}


def check_one_codec(plain: Mapping[str, Any]) -> None:
    """Raise ConfigError if a configuration names one codec in its method and a different one in its uplink."""
    uplink = plain.get("uplink")
    spec = uplink.get("update") if isinstance(uplink, Mapping) else None
    wanted = None if spec is None else parse_wanted(spec, "uplink.update")
    if not isinstance(wanted, BareCodec) or wanted.is_around:
        return
    for key, spec in _named_codecs(plain.get("method"), "method"):
        named = codecs.parse(spec, key)
        if _unpacked(wanted.codec) != _unpacked(named):
            raise ConfigError(
                f"{key} is {_to_text(codecs, named)}, but uplink.update is {_to_text(codecs, wanted.codec)}, and a "
                f"method has one codec; set {key}: null or uplink.update: null"
            )


def _insert(method: MethodConfig, direction: Direction, group: str, bare: BareCodec) -> tuple[MethodConfig, Link]:
    """Return the method's own link with the codec inserted, or a plain link if the method has none for the group."""
    own = _own_links(method, direction).get(group)
    if own is None:
        return method, Plain(bare.codec)
    inner: Codec | None = vars(own).get("codec")
    codec = bare.codec
    if isinstance(codec, Packed) and bare.is_around:  # `packed` alone: keep the method's codec, or wrap its link
        if inner is None:
            return method, PackedLink(own, codec.least)
        codec = Packed(_unpacked(inner), codec.least)
    changed = method.with_codec(codec) if (direction, group) == ("uplink", "update") else None
    if changed is not None:
        return changed, _own_links(changed, direction)[group]
    if inner is not None and _unpacked(inner) == _unpacked(codec):  # the method's own codec, packed or not
        return method, replace(own, codec=codec)  # type: ignore[type-var]  # every link is a dataclass
    raise ConfigError(
        f"{direction}.{group}: the codec {_to_text(codecs, codec)} conflicts with method {methods.name_of(method)}, "
        f"which is defined by its own link {_to_text(links, own)}; set {direction}.{group}: null to run the method, or "
        f"give a full link to replace the method's own: {{name: plain, codec: {_to_text(codecs, codec)}}}"
    )


def _own_links(method: MethodConfig, direction: Direction) -> Mapping[str, Link]:
    return method.default_uplink if direction == "uplink" else method.default_downlink


def _unpacked(codec: Codec) -> Codec:
    return codec.codec if isinstance(codec, Packed) else codec


def _named_codecs(method: object, key: str) -> Iterator[tuple[str, object]]:
    """Iterate over the codecs that a method and its inner methods name, with their keys."""
    if isinstance(method, Mapping):
        if method.get("codec") is not None:
            yield f"{key}.codec", method["codec"]
        yield from _named_codecs(method.get("inner"), f"{key}.inner")


def _to_text(registry: Registry[Any], part: object) -> str:
    """Return a part in one line of YAML."""
    return _inline(named_plain(registry, part))


def _inline(plain: Any) -> str:
    if not isinstance(plain, Mapping):
        return str(plain)
    name, rest = plain["name"], [f"{key}: {_inline(inner)}" for key, inner in plain.items() if key != "name"]
    return f"{{{', '.join([f'name: {name}', *rest])}}}" if rest else str(name)
