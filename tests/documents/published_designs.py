"""Ten tables as they are designed elsewhere: keys that differ from all of the documents'."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from keygraph import ID, Graph, Index, Many, Table, edge, field, many, node, record, stored

# repositories and issues
gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


class State(Enum):
    OPEN = "open"
    CLOSED = "closed"


@node("ACCOUNT#{login}")
class User:
    login: ID
    repositories: Many[Repository] = many()


@node("ACCOUNT#{login}")
class Organization:
    login: ID
    repositories: Many[Repository] = many()


@node("REPO#{owner.login}#{name}", gsi1("{owner}", "#REPO#{name}"))
class Repository:
    owner: User | Organization
    name: ID
    stars: int
    issues: Many[Issue] = many()
    by_state: Many[Issue] = many(index=gsi1)


@node(
    "REPO#{repository.owner.login}#{repository.name}",
    "ISSUE#{number:07d}",
    gsi1("REPO#{repository.owner.login}#{repository.name}", "ISSUE#{state}#{number:07d}"),
)
class Issue:
    repository: Repository
    number: int
    title: str
    state: State
    author: User
    reactions: Many[Reaction] = many()


@edge(
    "ISSUE#{issue.repository.owner.login}#{issue.repository.name}#{issue.number:07d}",
    "REACTION#{user.login}#{kind}",
)
class Reaction:
    issue: Issue
    user: User
    kind: str


repos = Graph(
    Table("GitHub", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    User,
    Organization,
    Repository,
    Issue,
    Reaction,
    type_attribute="Type",
    attribute_case="camel",
)

# games and leagues
lb = Index("Leaderboard", "LB", ("Score", "N"))


@node("PLAYER#{player_id}", "PROFILE")
class Player:
    player_id: ID
    name: str
    games: Many[Played] = many()


@node("GAME#{game_id}", "META", gsi1("OPEN#{map}", "{created_at}", lists="open_games"))
class Game:
    game_id: ID
    map: str | None
    created_at: datetime
    players: Many[Played] = many()


@edge(
    "{game}",
    "PLAYER#{player.player_id}",
    gsi1("PLAYER#{player.player_id}", "PLAYED#{started}"),
    lb("SCORES", lists="scores"),
)
class Played:
    game: Game
    player: Player
    started: datetime
    score: int = stored("Score")


games = Graph(
    Table("Games", partition_key="PK", sort_key="SK", indexes=[gsi1, lb]),
    Player,
    Game,
    Played,
    attribute_case="camel",
)


# chat
@node("ROOM#{room_id}", "ROOM")
class Room:
    room_id: ID
    topic: str | None
    messages: Many[Message] = many()
    members: Many[Member] = many()


@record("{room}", "MSG#{sent}#{message_id}")
class Message:
    room: Room
    sent: datetime
    message_id: ID
    sender: Person
    text: str


@node("PERSON#{handle}", "PERSON")
class Person:
    handle: ID
    rooms: Many[Member] = many()


@edge("{room}", "MEMBER#{person.handle}", gsi1("{person}", "ROOM#{joined}#{room.room_id}"))
class Member:
    room: Room
    person: Person
    joined: datetime


chat = Graph(Table("Chat", partition_key="PK", sort_key="SK", indexes=[gsi1]), Room, Message, Person, Member)


# IoT by day
@node("DEVICE#{device_id}", "DEVICE", gsi1("SITE#{site}", "{device_id}", lists="devices_of"))
class Device:
    device_id: ID
    site: str
    readings: Many[Reading] = many()


@record("DEVICE#{device.device_id}#{day}", "{time}")
class Reading:
    device: Device
    time: datetime
    celsius: Decimal

    @field(needs=("time",))
    def day(self) -> str:
        return self.time.strftime("%Y-%m-%d")


iot = Graph(Table("IoT", partition_key="pk", sort_key="sk", indexes=[gsi1]), Device, Reading)


# helpdesk
@node("TICKET#{ticket_id}", "A", gsi1("STATUS#{status}", "{opened}", lists="tickets"))
class Ticket:
    ticket_id: ID
    status: State
    opened: datetime
    assignee: Agent | None
    comments: Many[Comment] = many()


@node("AGENT#{agent_id}", "A")
class Agent:
    agent_id: ID


@record("{ticket}", "COMMENT#{at}")
class Comment:
    ticket: Ticket
    at: datetime
    body: str


desk = Graph(Table("Desk", partition_key="PK", sort_key="SK", indexes=[gsi1]), Ticket, Agent, Comment)


# bookings multi-tenant
@node(
    "TENANT#{tenant}#HOTEL#{hotel_id}",
    "HOTEL",
    gsi1("TENANT#{tenant}", "HOTEL#{name}#{hotel_id}", lists="hotels"),
)
class Hotel:
    tenant: str
    hotel_id: ID
    name: str
    bookings: Many[Booking] = many()


@node(
    "TENANT#{hotel.tenant}#HOTEL#{hotel.hotel_id}",
    "BOOKING#{night}#{room:03d}",
    gsi1("TENANT#{hotel.tenant}#GUEST#{guest?}", "{night}", lists="bookings_of"),
)
class Booking:
    hotel: Hotel
    night: date
    room: int
    guest: str | None


tenants = Graph(Table("Book", partition_key="PK", sort_key="SK", indexes=[gsi1]), Hotel, Booking)

# films casts
inv = Index("inverted", "SK", "PK")


@node("FILM#{film_id}")
class Film:
    film_id: ID
    title: str
    cast: Many[Role] = many()


@node("ACTOR#{actor_id}")
class Actor:
    actor_id: ID
    name: str
    roles: Many[Role] = many()


@edge("{film}", "{actor}")
class Role:
    film: Film
    actor: Actor
    character: str


films = Graph(Table("Films", partition_key="PK", sort_key="SK", indexes=[inv]), Film, Actor, Role)

# bookmarks
bydate = Index("ByDate", "PK", "CreatedAt", local=True)


@node("USER#{user_id}", "PROFILE")
class Reader:
    user_id: ID
    bookmarks: Many[Bookmark] = many()
    latest: Many[Bookmark] = many(index=bydate)


@record("{reader}", "BOOKMARK#{folder}#{url}")
class Bookmark:
    reader: Reader
    folder: str
    url: str
    created_at: datetime


bm = Graph(
    Table("Bookmarks", partition_key="PK", sort_key="SK", indexes=[bydate]),
    Reader,
    Bookmark,
    attribute_case="pascal",
)


# social timeline
@node("U#{handle}", "U", inv(lists="handles"))
class Handle:
    handle: ID
    timeline: Many[Entry] = many()
    followers: Many[Follow] = many(at="followed")
    following: Many[Follow] = many(at="follower")


@record("T#{owner.handle}", "{posted}#{post_id}")
class Entry:
    owner: Handle
    posted: datetime
    post_id: ID
    author: Handle


@edge("U#{followed.handle}", "F#{follower.handle}", inv())
class Follow:
    followed: Handle
    follower: Handle


social = Graph(Table("Timelines", partition_key="PK", sort_key="SK", indexes=[inv]), Handle, Entry, Follow)


# content versions
@node("DOC#{doc_id}", "v0")
class Doc:
    doc_id: ID
    latest: int
    versions: Many[Version] = many()


@record("{doc}", "v{number:06d}")
class Version:
    doc: Doc
    number: int
    body: str


content = Graph(Table("Content", partition_key="PK", sort_key="SK"), Doc, Version)
