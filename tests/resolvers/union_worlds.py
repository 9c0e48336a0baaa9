"""Models with ends of several types: by keys that tell them, by keys that are alike, and in the keys of edges."""

from __future__ import annotations

from datetime import date

from keygraph import ID, Graph, Index, Many, Table, edge, field, many, node, record, stored
from keygraph.dynamo.items import Item

by_owner = Index("ByOwner", "OwnerPK", "OwnerSK")

# --- Keys that tell the type --------------------------------------------------------------------------


@node("USER#{user_id}")
class User:
    user_id: ID
    name: str

    projects: Many[Project] = many()
    notes: Many[Note] = many()
    memberships: Many[Membership] = many()
    stars: Many[Star] = many()


@node("ORG#{org_id}")
class Organization:
    org_id: ID
    name: str

    projects: Many[Project] = many()
    notes: Many[Note] = many()
    memberships: Many[Membership] = many()


@node("BOT#{vendor}#{number:04d}", item=False)
class Bot:
    """The table holds no item for it; it has two key fields."""

    vendor: ID
    number: int

    notes: Many[Note] = many()


@node("PROJECT#{project_id}", by_owner("{owner}", "PROJECT#{project_id}"))
class Project:
    project_id: ID
    title: str
    owner: User | Organization
    """Who pays."""
    reviewer: User | Organization | None = stored("ReviewedBy")

    stars: Many[Star] = many(needs=("user_id",))

    @field(needs=("owner",))
    def owner_word(self) -> str:
        return type(self.owner).__name__

    @field(needs=("owner", "reviewer"))
    def contact(self) -> Organization | User:
        return self.reviewer or self.owner


@record("{author}", "NOTE#{day}#{about?}", by_owner("NOTES", "{author}#{day}", lists="all_notes"))
class Note:
    """Its key begins with one of three kinds of nodes."""

    author: User | Organization | Bot
    day: date
    about: Organization | User | None
    text: str


@edge("TEAM#{team.team_id}", "{member}", by_owner("{member}", "TEAM#{team.team_id}"))
class Membership:
    """A node at its far end is of one of three types."""

    team: Team
    member: User | Organization | Team
    role: str


@node("TEAM#{team_id}", "TEAM")
class Team:
    team_id: ID
    name: str

    members: Many[Membership] = many(at="team")
    teams: Many[Membership] = many(at="member")


@edge("{user}", "STAR#{project}")
class Star:
    user: User
    project: Project


@node("BADGE#{owner}")
class Badge:
    """A node whose key is that of its owner."""

    owner: User | Organization
    colour: str


told_by_keys = Graph(
    Table("Owned", partition_key="PK", sort_key="SK", indexes=[by_owner]),
    User,
    Organization,
    Bot,
    Project,
    Note,
    Membership,
    Team,
    Star,
    Badge,
    attribute_case="camel",
    type_attribute="Type",
    writes=True,
)


def user_item(user: str) -> Item:
    key = f"USER#{user}"
    return {"PK": key, "SK": key, "Type": "User", "userId": user, "name": f"Name of {user}"}


def org_item(org: str) -> Item:
    key = f"ORG#{org}"
    return {"PK": key, "SK": key, "Type": "Organization", "orgId": org, "name": f"Name of {org}"}


def team_item(team: str) -> Item:
    return {"PK": f"TEAM#{team}", "SK": "TEAM", "Type": "Team", "teamId": team, "name": f"Name of {team}"}


def project_item(project: str, owner: str, **fields: str) -> Item:
    """A project whose owner stands in the index's key alone, unless it is given as an attribute too."""
    key = f"PROJECT#{project}"
    return {
        "PK": key,
        "SK": key,
        "Type": "Project",
        "projectId": project,
        "title": f"Title of {project}",
        "OwnerPK": owner,
        "OwnerSK": key,
        **fields,
    }


def note_item(author: str, day: str, about: str = "") -> Item:
    return {
        "PK": author,
        "SK": f"NOTE#{day}#{about}",
        "Type": "Note",
        "OwnerPK": "NOTES",
        "OwnerSK": f"{author}#{day}",
        "text": f"{author} on {day}",
    }


def membership_item(team: str, member: str, role: str) -> Item:
    return {
        "PK": f"TEAM#{team}",
        "SK": member,
        "Type": "Membership",
        "OwnerPK": member,
        "OwnerSK": f"TEAM#{team}",
        "role": role,
    }


# --- Keys that are alike ------------------------------------------------------------------------------


@node("ACCOUNT#{login}", type="Person")
class Person:
    login: ID
    name: str

    repositories: Many[Repository] = many()


@node("ACCOUNT#{login}")
class Company:
    login: ID
    country: str

    repositories: Many[Repository] = many()


@node("REPO#{owner.login}#{name}", by_owner("{owner}", "#REPO#{name}"))
class Repository:
    owner: Company | Person
    name: ID
    forked_by: Person | Company | None

    @field(needs=("owner",))
    def address(self) -> str:
        return f"https://example.com/{self.owner.login}/{self.name}"

    @field(needs=("owner",))
    def same_owner(self) -> Person | Company:
        return self.owner


told_by_reading = Graph(
    Table("Accounts", partition_key="PK", sort_key="SK", indexes=[by_owner]),
    Person,
    Company,
    Repository,
    attribute_case="camel",
    type_attribute="Type",
    writes=True,
)


def person_item(login: str) -> Item:
    key = f"ACCOUNT#{login}"
    return {"PK": key, "SK": key, "Type": "Person", "login": login, "name": f"Name of {login}"}


def company_item(login: str) -> Item:
    key = f"ACCOUNT#{login}"
    return {"PK": key, "SK": key, "Type": "Company", "login": login, "country": "IS"}


def repository_item(owner: str, name: str, **fields: str) -> Item:
    key = f"REPO#{owner}#{name}"
    index = {"OwnerPK": f"ACCOUNT#{owner}", "OwnerSK": f"#REPO#{name}"}
    return {"PK": key, "SK": key, "Type": "Repository", **index, **fields}
