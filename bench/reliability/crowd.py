"""Many clients of one address that send the most expensive operations that the limits allow, all at once.

The graph is a social network of 124,000 items, in which everybody is reached from anybody in three steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from keygraph.dynamo.items import Item

MODEL = "keygraph_examples.social:graph"
CLIENTS = 300
RESETS = "answers of 850 KB and resets at any time, from two addresses"
"""The attack whose clients do not wait for the answers."""
SMALL = orjson.dumps({"query": '{ user(userId: "u77") { name } }'})
SMALL_KEY = "USER#u77", "PROFILE"
"""The item that it reads."""
_PEOPLE = 4_000
_STEPS = (1, 7, 31, 64, 127, 255, 401, 512, 733, 901, 1_023, 1_301, 1_555, 1_777, 1_999)
"""Each step around the circle of people makes two friends of everybody."""
_NEW_FRIENDS = 900
_WRITES = """
mutation ($id: ID!, $name: String!, $friends: [PutFriendshipInput!]!, $ends: OnEdges!) {
  createUser(input: {userId: $id, name: $name}) { user { userId } }
  putFriendships(input: {atomic: false, inputs: $friends}) { results { friendship { friend { name } } } }
  deleteUser(input: {userId: $id, onEdges: $ends}) { detached }
}
"""


def items() -> Iterator[Item]:
    """The people, and their friendships from both ends."""
    for number in range(_PEOPLE):
        key = f"USER#u{number}"
        yield {"PK": key, "SK": "PROFILE", "name": f"the person {number}"}
        for step in _STEPS:
            for other in (number + step, number - step):
                friend = f"FRIEND#u{other % _PEOPLE}"
                yield {"PK": key, "SK": friend, "friendship_since": "2024-01-01"}


def _again(field: str, count: int) -> str:
    return " ".join(f"a{number}: {field}" for number in range(count))


def _of_user(field: str, count: int = 11) -> Callable[[int], bytes]:
    return lambda _: orjson.dumps({"query": f'{{ user(userId: "u1") {{ {_again(field, count)} }} }}'})


def _paths(_: int) -> bytes:
    """Nothing leads there, so that the search reads all that it may."""
    field = 'path(from: "u1", to: "nobody", via: [USER_FRIENDS, USER_FOLLOWS]) { length }'
    return orjson.dumps({"query": f"{{ {_again(field, 11)} }}"})


def _friends(_: int) -> bytes:
    """An answer of 850 KB."""
    names = " ".join(f"{'n' * 40}{number}: name" for number in range(13))
    theirs = f"friends(first: 100) {{ edges {{ cursor friendshipSince node {{ id userId {names} }} }} }}"
    return orjson.dumps(
        {"query": f'{{ user(userId: "u1") {{ friends(first: 100) {{ nodes {{ {theirs} }} }} }} }}'}
    )


def _writes(number: int) -> bytes:
    """A new user, with hundreds of friends, who goes again."""
    friends = [
        {"userId": f"new{number}", "friendId": f"u{friend}", "friendshipSince": "2024-01-01"}
        for friend in range(_NEW_FRIENDS)
    ]
    variables = {"id": f"new{number}", "name": "new", "friends": friends, "ends": "DETACH"}
    return orjson.dumps({"query": _WRITES, "variables": variables})


ATTACKS: Mapping[str, Callable[[int], bytes]] = {
    "reach": _of_user("network(first: 100) { totalCount nodes { name } }"),
    "ranked": _of_user("peopleYouMayKnow(first: 100) { totalCount nodes { name } }"),
    "aggregate": _of_user(
        "network(first: 1) { aggregate { count max(field: NAME) min(field: USER_ID) } }", 5
    ),
    "path": _paths,
    "bulk writes and DETACH": _writes,
    RESETS: _friends,
}
"""The body that a client of each attack sends, by the client's number."""
