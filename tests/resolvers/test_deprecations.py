"""`deprecated=` in a model: clients are told in the schema, and nothing else changes."""

from __future__ import annotations

import re
from datetime import datetime

from graphql import GraphQLInputObjectType, GraphQLObjectType

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    One,
    Table,
    created,
    edge,
    field,
    fields,
    many,
    new_id,
    node,
    one,
    record,
    stored,
    ttl,
    updated,
)
from keygraph_resolvers import build_schema
from keygraph_resolvers.schema.strawberry_internals import core_schema

by_mail = Index("by-mail", "mailKey", "mailSort")


@fields
class Made:
    made: datetime = created(deprecated="Of all that is made.")


@node("USER#{user_id}", by_mail("MAIL#{mail}", "{user_id}", finds="user_by_mail"))
class User(Made):
    user_id: ID
    name: str
    mail: str = stored("email", deprecated="Use name.")
    nick: str | None = stored(default=None, deprecated="")
    seen: datetime = updated(deprecated="Nobody knows.")

    pets: Many[Pet] = many(deprecated="Use animals.")
    animals: Many[Pet]
    cars: Many[Drives]
    car: One[Drives] = one(deprecated="Use cars.")

    @field(needs=("name",), deprecated="Shout yourself.")
    def loud(self) -> str:
        return self.name.upper()


@record("{user}", "PET#{pet_id}")
class Pet:
    user: User
    pet_id: ID = new_id()
    friend: Car | None
    until: datetime | None = ttl(deprecated="They stay.")


@node("CAR#{car_id}", by_mail("CARS", "{car_id}"), deprecated="Walk.")
class Car:
    car_id: ID


@edge("{user}", "DRIVES#{car.car_id}")
class Drives:
    user: User
    car: Car


graph = Graph(
    Table("Deprecating", partition_key="pk", sort_key="sk", indexes=[by_mail]),
    User,
    Pet,
    Car,
    Drives,
    type_attribute="type",
    writes=True,
)


def test_deprecations() -> None:
    found = {}
    for name, type_ in core_schema(build_schema(graph)).type_map.items():
        if isinstance(type_, GraphQLObjectType | GraphQLInputObjectType) and not name.startswith("__"):
            for each, definition in type_.fields.items():
                if definition.deprecation_reason is not None:
                    found[f"{name}.{each}"] = definition.deprecation_reason
    inputs = {place: reason for place, reason in found.items() if re.search(r"(Input|Where)\.", place)}
    assert inputs == {
        "CreateUserInput.nick": "",
        "UpsertUserInput.nick": "",
        "UpdateUserInput.mail": "Use name.",
        "UpdateUserInput.nick": "",
        "PetWhere.until": "They stay.",
        **{
            f"{name}.{field}": reason
            for name in (
                "UserPetsInput",
                *(f"{each}PetInput" for each in ("Create", "Put", "Update", "Upsert")),
            )
            for field, reason in (("friendId", "Walk."), ("until", "They stay."))
        },
        **{f"{action}DrivesInput.carId": "Walk." for action in ("Update", "Move", "Delete")},
    }
    writes = {
        f"Mutation.{action}Car{s}"
        for action in ("create", "update", "upsert", "move", "delete")
        for s in ("", "s")
    }
    to_cars = {
        "Query.car",
        "Query.cars",
        "User.cars",
        "Pet.friend",
        "Drives.car",
        "DeleteDrivesPayload.car",
    } | writes
    assert {place: reason for place, reason in found.items() if place not in inputs} == {
        "User.made": "Of all that is made.",
        "User.mail": "Use name.",
        "User.nick": "",
        "User.seen": "Nobody knows.",
        "User.pets": "Use animals.",
        "User.car": "Use cars.",
        "User.loud": "Shout yourself.",
        "Pet.until": "They stay.",
        **dict.fromkeys(to_cars, "Walk."),
    }
    assert '  mail: String! @deprecated(reason: "Use name.")' in build_schema(graph).as_str()
