"""Declaring types: what a decorated class is in Python, and what its strings and base classes give it."""

from __future__ import annotations

import dataclasses
import sys
from datetime import datetime
from enum import Enum
from types import ModuleType

import pytest

import keygraph
from keygraph import ID, Graph, Long, Many, Table, edge, field, fields, many, node, record, stored
from keygraph.declare.declaration import declaration_of
from keygraph.declare.docstrings import docstring, member_docstrings
from keygraph.model.records import RecordType

TABLE = Table("Tests", partition_key="PK", sort_key="SK")


class Colour(Enum):
    """A colour."""

    RED = "red"
    """Like blood."""
    BLUE = "blue"


@fields
class Timed:
    """What has times."""

    created_at: datetime = stored("CreatedAt")
    """When it was made."""
    version: int = stored("data", "version", default=1)

    @field(needs=("version",))
    def is_first(self) -> bool:
        """Whether it never changed."""
        return self.version == 1


@node("CAR#{car_id}")
class Car(Timed):
    """Something
    that drives."""

    car_id: ID
    """The number plate."""
    colour: Colour = Colour.BLUE
    doors: int | None = stored(default=None)

    wheels: Many[Wheel]
    """What it stands on."""


@record("{car}", "WHEEL#{number}")
class Wheel(Timed):
    car: Car
    number: Long
    created_at: datetime = stored("MadeAt")


@node("BIKE#{bike_id}")
class Bike:
    bike_id: ID


def types(*classes: type) -> dict[str, RecordType]:
    return dict(Graph(TABLE, *classes).check().types)


MOMENT = datetime.fromisoformat("2024-05-01T10:00:00Z")


# --- In Python ----------------------------------------------------------------------------------------


def test_a_type_is_a_dataclass_with_keywords_alone() -> None:
    car = Car(car_id=ID("1"), created_at=MOMENT)
    assert (car.car_id, car.colour, car.doors, car.version) == ("1", Colour.BLUE, None, 1)
    assert car == Car(car_id=ID("1"), created_at=MOMENT)
    assert car != Car(car_id=ID("2"), created_at=MOMENT)
    assert car.is_first()
    assert "wheels" not in repr(car)
    with pytest.raises(TypeError):
        Car(ID("1"))  # type: ignore[misc, call-arg]


@pytest.mark.parametrize("wrong", ["wheels", "plate"])
def test_only_fields_are_keywords(wrong: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{wrong}'"):
        Car(car_id=ID("1"), created_at=MOMENT, **{wrong: None})


@pytest.mark.parametrize("name", ["many", "one", "created"])
def test_an_option_that_a_field_does_not_have_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=r"a field has no option acess"):
        getattr(keygraph, name)(acess=[])


def test_a_field_without_a_default_must_be_given() -> None:
    with pytest.raises(TypeError, match="'created_at'"):
        Car(car_id=ID("1"))  # type: ignore[call-arg]
    assert {
        declared.name for declared in dataclasses.fields(Car) if declared.default is dataclasses.MISSING
    } == {
        "car_id",
        "created_at",
    }


def test_a_declaration_registers_nothing() -> None:
    assert list(types(Bike)) == ["Bike"]
    assert declaration_of(Timed) is not None
    assert declaration_of(type("Heir", (Car,), {})) is None


def test_a_graph_takes_the_types_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = "from __future__ import annotations\nfrom keygraph import ID, Many, edge, fields, node, record\n"
    houses = module(
        monkeypatch,
        "houses",
        f"""{begin}
@fields
class Named:
    name: str

@node("HOUSE#{{house_id}}")
class House(Named):
    house_id: ID
    rooms: Many[Room]

@record("{{house}}", "ROOM#{{number}}")
class Room:
    house: House
    number: int

Chamber = Room
""",
    )
    people = module(
        monkeypatch,
        "people",
        f"""{begin}
from houses import House

@node("PERSON#{{person_id}}")
class Person:
    person_id: ID
    house: House
""",
    )

    def names(*classes: type, models: list[ModuleType]) -> list[str]:
        return list(Graph(TABLE, *classes, models=models).check().types)

    assert names(models=[houses]) == ["House", "Room"]
    assert names(models=[houses, people]) == ["House", "Room", "Person"]
    assert names(models=[people, houses]) == ["House", "Person", "Room"]
    assert names(Bike, models=[houses]) == ["Bike", "House", "Room"]
    assert names(houses.House, houses.Room, models=[people]) == ["House", "Room", "Person"]


def module(monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> ModuleType:
    """A module that was imported."""
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(source, vars(made))
    return made


def test_a_base_class_gives_its_fields() -> None:
    made = types(Car, Wheel)
    car, wheel = made["Car"], made["Wheel"]
    assert list(car.fields) == ["created_at", "version", "car_id", "colour", "doors"]
    assert car.fields["version"].attribute == ("data", "version")
    assert car.fields["version"].default == 1
    assert car.fields["created_at"].description == "When it was made."
    assert wheel.fields["created_at"].attribute == ("MadeAt",)
    assert list(car.methods) == ["is_first"]
    assert car.methods["is_first"].description == "Whether it never changed."


# --- What the graph makes of it -----------------------------------------------------------------------


def test_descriptions_stand_in_strings() -> None:
    made = types(Car, Wheel)
    assert made["Car"].description == "Something\nthat drives."
    assert made["Car"].fields["car_id"].description == "The number plate."
    assert made["Car"].fields["colour"].description is None
    assert made["Car"].lists["wheels"].description == "What it stands on."
    assert made["Wheel"].description is None, "a dataclass's own docstring is none"
    assert member_docstrings(Colour) == {"RED": "Like blood."}


def test_descriptions_without_a_source() -> None:
    assert member_docstrings(type("Made", (), {})) == {}
    assert docstring("  ") is None
    assert docstring("One.\n\n    Two.\n") == "One.\n\nTwo."


def test_descriptions_of_a_class_in_a_function() -> None:
    @node("CAR#{car_id}")
    class Local:
        """First
second
"""  # fmt: skip

        car_id: ID
        """The number plate."""

    assert member_docstrings(Local) == {"car_id": "The number plate."}


def test_types_may_be_declared_in_a_function() -> None:
    class Kind(Enum):
        A = "a"

    @node("SHIP#{ship_id}")
    class Ship:
        ship_id: ID
        kind: Kind
        cabins: Many[Cabin]
        first_cabin: keygraph.One[Cabin]
        quoted_cabins: "Many[Cabin]"  # noqa: UP037  # a quoted annotation is a list, too
        said_cabins: Many[Cabin] = many()

    @edge("{ship}", "{guest}")
    class Cabin:
        ship: Ship
        guest: Bike

    made = types(Ship, Cabin, Bike)
    assert made["Ship"].fields["kind"].type.python is Kind
    assert made["Ship"].lists["cabins"].of == (made["Cabin"],)
    assert made["Ship"].lists["first_cabin"].is_one
    ship = Ship(ship_id=ID("1"), kind=Kind.A)
    assert (ship.ship_id, ship.kind) == ("1", Kind.A)
    assert made["Cabin"].key_ends == ("ship", "guest")


def test_a_list_may_stand_in_a_base_class() -> None:
    @fields
    class Rented:
        stays: Many[Stay]

    @node("ROOM#{room_id}")
    class Room(Rented):
        room_id: ID

    @record("{room}", "STAY#{day}")
    class Stay:
        room: Room
        day: str

    assert types(Room, Stay)["Room"].lists["stays"].of[0].cls is Stay
    assert vars(Room(room_id=ID("1"))) == {"room_id": "1"}
