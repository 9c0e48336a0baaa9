"""A social network: the table `Users` of an article on graphs in DynamoDB.

Everything that is known of a user stands in the user's partition: `PROFILE` is the user, and each other sort key says
a relationship and whom or what it leads to (`FRIEND#Bob`, `LIKES#POST#12345`, `FOLLOWS#USER#Charlie`). There is no
index and no attribute that says what an item is. A friendship is stored twice, once in each friend's partition; likes
and follows are stored with the user they come from alone. So nothing finds who likes a post or who follows a user,
and no such list is here.

The article's own items are in `social.jsonl`, what makes them a sample to look around in is in
`social.described.jsonl`.
"""

from __future__ import annotations

from datetime import date, datetime

from keygraph import ID, Graph, Many, Ranked, Reach, Table, edge, node, ranked, reach


@node("USER#{user_id}", "PROFILE")
class User:
    """Somebody who is here."""

    user_id: ID
    name: str
    """The user's full name."""

    friends: Many[Friendship]
    """Whom the user is friends with, by their ids."""
    likes: Many[Like]
    """The posts that the user likes."""
    follows: Many[Follow]
    """Whom the user follows."""
    relationships: Many[Follow | Friendship | Like]
    """Everything that is known of the user: whom they follow, their friends, and what they like."""
    network: Reach[User] = reach("friends", depth=3)
    """Friends, their friends, and the friends of these."""
    people_you_may_know: Ranked[User] = ranked("friends", "friends")
    """Whom most of the user's friends know."""


@node("POST#{post_id}", item=False)
class Post:
    """Something that was posted."""

    # The table knows a post by its likes alone and holds no item for it.

    post_id: ID


@edge("{user}", "FRIEND#{friend.user_id}", mirror=True, writes=["put", "delete", "bulk"])
class Friendship:
    """Two users are friends."""

    # Each has an item for it, the reciprocal of the other's.

    user: User
    friend: User
    friendship_since: date
    """The day on which they became friends."""


@edge("{user}", "LIKES#{post}")
class Like:
    """A user likes a post."""

    user: User
    post: Post
    timestamp: datetime
    """Since when."""


@edge("{follower}", "FOLLOWS#{followed}")
class Follow:
    """A user follows another, who need not know it."""

    follower: User
    followed: User
    timestamp: datetime
    """Since when."""


graph = Graph(
    Table("Users", partition_key="PK", sort_key="SK"),
    User,
    Post,
    Friendship,
    Like,
    Follow,
    store_key_fields=False,
    paths=True,
)
