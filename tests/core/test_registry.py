"""Names select dataclasses; what cannot be parsed says where, what and how to mend it."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from fedreuse.core.allowed import allow
from fedreuse.core.errors import ConfigError, require
from fedreuse.core.registry import REGISTRIES, Registry, describe_fields, named_plain, parse, part, to_plain

shapes: Registry[Any] = Registry("shapes", "sys")


@shapes.register("dot")
@dataclass(frozen=True)
class Dot:
    """A point."""


@shapes.register("square")
@dataclass(frozen=True)
class Square:
    """A square."""

    side: float = 1.0
    colour: Literal["red", "blue"] = "red"
    is_filled: bool = False

    def __post_init__(self) -> None:
        require(self.side > 0, "square.side must be positive", self.side)


@dataclass(frozen=True)
class Inner:
    count: int = 3


@dataclass(frozen=True)
class Drawing:
    title: str
    shape: Any = part(shapes, "square")
    frame: Any = part(shapes, {"name": "square", "side": 9})
    inner: Inner = field(default_factory=Inner)
    sizes: tuple[int, ...] = (1, 2)
    maybe: float | None = None
    own: str = field(default="", metadata={"parse": lambda value, where: f"{where}={value}"})


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    yield
    sys.modules.pop("shape_of_a_user", None)


def test_a_name_alone_or_in_a_mapping() -> None:
    assert shapes.parse("square", "shape") == Square()
    assert shapes.parse({"name": "square", "side": 2}, "shape") == Square(2.0)


def test_names_are_sorted_and_known_to_all() -> None:
    assert shapes.names() == ["dot", "square"]
    assert REGISTRIES["shapes"] is shapes


def test_a_whole_tree() -> None:
    drawing = parse(Drawing, {"title": "t", "shape": "dot", "inner": {"count": 5}, "sizes": [4], "own": 1}, "")
    assert drawing == Drawing("t", Dot(), Square(9.0), Inner(5), (4,), None, "own=1")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sqare", r"^shape: 'sqare' is not one of the shapes; did you mean 'square'\? \(see `fedreuse list shapes`"),
        ({"side": 2}, r"^shape: a name is missing, for example \{name: dot\}; got \{'side': 2\}$"),
        (["dot"], r"^shape: a mapping of keys to values expected, got \['dot'\]$"),
        ({"name": "square", "sid": 2}, r"^shape\.sid: unknown key; did you mean 'side'\?$"),
        ({"name": "square", "side": "wide"}, r"^shape\.side: input should be a valid number.*got 'wide'$"),
        ({"name": "square", "side": True}, r"^shape\.side: float expected, got True$"),
        ({"name": "square", "side": -1}, r"^shape: square\.side must be positive, got -1\.0$"),
        ({"name": "square", "colour": "green"}, r"^shape\.colour: input should be 'red' or 'blue', got 'green'$"),
        ("no.such.module:X", r"^shape\.name: cannot import 'no\.such\.module' .*run from the folder that holds it"),
        ("pathlib:Pth", r"^shape\.name: 'pathlib' has no 'Pth'; did you mean 'Path'\?$"),
        ("pathlib:Path", r"^shape\.name: pathlib:Path is not a frozen dataclass"),
    ],
)
def test_mistakes_name_the_place_the_value_and_the_way_out(spec: object, message: str) -> None:
    allow(["no.such.module", "pathlib"])
    with pytest.raises(ConfigError, match=message):
        shapes.parse(spec, "shape")


def test_mistakes_deep_in_a_tree_name_the_whole_path() -> None:
    with pytest.raises(ConfigError, match=r"^run\.inner\.count: input should be a valid integer.*got 1\.5$"):
        parse(Drawing, {"title": "t", "inner": {"count": 1.5}}, "run")
    with pytest.raises(ConfigError, match=r"^title: missing, and it has no default; give it a value$"):
        parse(Drawing, {}, "")
    with pytest.raises(ConfigError, match=r"^the configuration: a mapping of keys to values expected, got 3$"):
        parse(Drawing, 3, "")


def test_a_bool_is_a_bool() -> None:
    assert shapes.parse({"name": "square", "is_filled": True}, "shape").is_filled


def test_to_plain_writes_every_default_and_comes_back() -> None:
    drawing = parse(Drawing, {"title": "t", "maybe": 2}, "")
    plain = to_plain(drawing)
    assert plain["shape"] == {"name": "square", "side": 1.0, "colour": "red", "is_filled": False}
    assert plain["sizes"] == [1, 2]
    assert plain["maybe"] == 2.0
    del plain["own"]  # a field with a parser of its own writes what it holds
    assert parse(Drawing, plain, "") == drawing


def test_plain_values() -> None:
    assert to_plain({"a": (1, Path("x"))}) == {"a": [1, "x"]}
    assert named_plain(shapes, None) is None
    assert named_plain(shapes, Dot()) == {"name": "dot"}


def test_one_name_one_class() -> None:
    def other() -> type:
        return dataclass(frozen=True)(type("Dot", (), {"__module__": "elsewhere"}))

    with pytest.raises(ConfigError, match=r"^shapes: 'dot' is already .*Dot$"):
        shapes.register("dot")(other())
    assert shapes.register("dot")(Dot) is Dot  # the same module may be imported twice


def test_a_users_own_class() -> None:
    sys.modules["shape_of_a_user"] = module = ModuleType("shape_of_a_user")
    exec(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Oval:\n    width: float = 2.0\n",
        vars(module),
    )
    allow(["shape_of_a_user"])
    oval = shapes.parse({"name": "shape_of_a_user:Oval", "width": 3}, "shape")
    assert oval.width == 3.0
    plain = named_plain(shapes, oval)
    assert plain == {"name": "shape_of_a_user:Oval", "width": 3.0}
    assert shapes.parse(plain, "shape") == oval


def test_a_users_own_function_is_adapted() -> None:
    functions: Registry[Any] = Registry("functions", "sys", adapt=lambda target, name, options: (target, name, options))
    allow(["math"])
    try:
        assert functions.parse({"name": "math:sqrt", "x": 1}, "f") == (__import__("math").sqrt, "math:sqrt", {"x": 1})
    finally:
        del REGISTRIES["functions"]


def test_descriptions() -> None:
    rows = describe_fields(Drawing)
    assert rows[0] == ("title", "str", "(required)")
    assert rows[2][2] == "{'name': 'square', 'side': 9.0, 'colour': 'red', 'is_filled': False}"
    assert ("sizes", "tuple[int, ...]", "(1, 2)") in rows


Corner = Literal["round", "sharp"]


def test_a_type_that_has_a_name_of_its_own_is_told_by_its_values() -> None:
    @dataclass(frozen=True)
    class Frame:
        corner: Corner = "round"
        width: int = 1

    assert describe_fields(Frame) == [
        ("corner", "Literal['round', 'sharp']", "'round'"),
        ("width", "int", "1"),
    ]


def test_null_is_the_default_unless_the_field_may_be_nothing() -> None:
    @dataclass(frozen=True)
    class Drawing:
        shape: Any = part(shapes, {"name": "square", "side": 2.0})
        copies: int = 3
        limit: int | None = 10

    found = parse(Drawing, {"copies": None, "limit": None}, "")
    assert (found.copies, found.limit) == (3, None)


def test_null_is_no_value_where_there_is_no_default() -> None:
    @dataclass(frozen=True)
    class Needed:
        copies: int

    with pytest.raises(ConfigError, match=r"^copies: .*got None"):
        parse(Needed, {"copies": None}, "")


class Shape(ABC):
    """A base with one thing to define and one default."""

    @abstractmethod
    def area(self) -> float: ...

    def name(self) -> str:
        return "shape"


@pytest.fixture
def based() -> Iterator[Registry[Shape]]:
    yield Registry("based shapes", "dataclasses", base=Shape)
    del REGISTRIES["based shapes"]


def test_a_part_that_lacks_a_method_is_refused_when_it_is_registered(based: Registry[Shape]) -> None:
    @dataclass(frozen=True)
    class Blob(Shape):
        pass

    with pytest.raises(ConfigError, match=r"'blob'.*area.*Shape"):
        based.register("blob")(Blob)
    assert based.names() == []


def test_a_part_need_not_derive_from_its_base_if_it_defines_all_of_it(based: Registry[Shape]) -> None:
    @dataclass(frozen=True)
    class Whole:
        def area(self) -> float:
            return 1.0

        def name(self) -> str:
            return "whole"

    @dataclass(frozen=True)
    class Half:
        def area(self) -> float:
            return 0.5

    based.register("whole")(Whole)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="derive from Shape"):
        based.register("half")(Half)  # type: ignore[type-var]
