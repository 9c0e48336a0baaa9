"""A generated social network: preferential attachment (Barabási–Albert) within communities, and a tree of categories.

Everybody who joins makes friends with people who already have friends, mostly in the same community. Two more people
are famous: they have thousands of friends, few of them in common. One seed makes one network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from keygraph import ID, Graph, Many, Ranked, Reach, Table, edge, many, node, ranked, reach
from keygraph.dynamo.items import Item

PEOPLE_OF_A_COMMUNITY = 500
AT_HOME = 0.8
"""The share of a person's friends that are in the same community."""
FAMOUS, OTHER = "famous1", "famous2"
FAMOUS_FRIENDS, IN_COMMON = 5_000, 20
SHY = "shy"
SHY_FRIENDS = 8
CHILDREN = 15


@node("PERSON#{name}")
class Person:
    name: ID
    friends: Many[Friendship]
    people_you_may_know: Ranked[Person] = ranked("friends", "friends")
    network: Reach[Person] = reach("friends", depth=3)


@edge("{person}", "FRIEND#{friend.name}", mirror=True, item_bytes=128)
class Friendship:
    person: Person
    friend: Person


@node("CATEGORY#{number}")
class Category:
    number: ID
    children: Many[Below] = many(at="parent")
    descendants: Reach[Category] = reach("children", depth=10)


@edge("{parent}", "CHILD#{child.number}", item_bytes=128)
class Below:
    parent: Category
    child: Category


graph = Graph(
    Table("Network", partition_key="PK", sort_key="SK"),
    Person,
    Friendship,
    Category,
    Below,
    store_key_fields=False,
    paths=True,
)


@dataclass
class Network:
    """The friendships between people."""

    friends: dict[str, set[str]] = field(default_factory=dict)
    categories: int = 0

    def befriend(self, one: str, other: str) -> bool:
        """Makes two people friends. Returns False if they are friends already."""
        if one == other or other in self.friends.setdefault(one, set()):
            return False
        self.friends[one].add(other)
        self.friends.setdefault(other, set()).add(one)
        return True

    def items(self) -> Iterator[Item]:
        """The items of the table."""
        for name, friends in self.friends.items():
            yield {"PK": f"PERSON#{name}", "SK": f"PERSON#{name}"}
            for friend in sorted(friends):
                yield {"PK": f"PERSON#{name}", "SK": f"FRIEND#{friend}"}
        for number in range(self.categories):
            yield {"PK": f"CATEGORY#{number}", "SK": f"CATEGORY#{number}"}
            for child in children(number, self.categories):
                yield {"PK": f"CATEGORY#{number}", "SK": f"CHILD#{child}"}


def children(number: int, categories: int) -> range:
    """The categories below one."""
    first = number * CHILDREN + 1
    return range(first, min(first + CHILDREN, categories))


def made(people: int, friends: int, categories: int, seed: int = 17) -> Network:
    """Generates a network of this many people, each of whom makes `friends` friends when they join."""
    random, network = Random(seed), Network(categories=categories)
    communities = max(1, people // PEOPLE_OF_A_COMMUNITY)
    # Each person is in it once for each friend, so people with many friends are picked more often.
    known: list[str] = []
    at_home: list[list[str]] = [[] for _ in range(communities)]
    for number in range(people):
        name, home = f"p{number:06}", number % communities
        wanted, tries = min(friends, number), 0
        while wanted and tries < 20 * friends:
            among = at_home[home] if at_home[home] and random.random() < AT_HOME else known
            tries += 1
            other = random.choice(among) if among else f"p{random.randrange(number):06}"
            if network.befriend(name, other):
                wanted -= 1
                for each in (name, other):
                    known.append(each)
                    at_home[int(each[1:]) % communities].append(each)
        network.friends.setdefault(name, set())
    _add_famous(network, people, random)
    return network


def _add_famous(network: Network, people: int, random: Random) -> None:
    number = min(FAMOUS_FRIENDS, people // 3)
    chosen = random.sample(range(people), 2 * number - IN_COMMON)
    for name, theirs in ((FAMOUS, chosen[:number]), (OTHER, chosen[number - IN_COMMON :])):
        for each in theirs:
            network.befriend(name, f"p{each:06}")
    for each in chosen[:SHY_FRIENDS]:
        network.befriend(SHY, f"p{each:06}")
