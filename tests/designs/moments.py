"""Posts with comments and likes, and a feed. From jarek200/social-app on GitHub, its access patterns."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")


@node("USER#{user_id}", "PROFILE", gsi1("USER#{user_id}", "PROFILE", lists=False))
class User:
    user_id: ID
    name: str
    likes: Many[Like]


@node("FEED#{feed_id}", item=False)
class Feed:
    feed_id: ID
    posts: Many[Post]


@node("POST#{post_id}", "POST", gsi1("{feed}", "POST#{created_at}"))
class Post:
    post_id: ID
    feed: Feed = stored(in_key=True)
    author: User
    text: str
    created_at: datetime
    comments: Many[Comment] = many(index=None)
    likes: Many[Like]


@record("{post}", "COMMENT#{comment_id}", gsi1("{post}", "COMMENT#{created_at}"))
class Comment:
    post: Post
    comment_id: ID
    author: User
    text: str
    created_at: datetime


@edge("{post}", "LIKE#{user.user_id}", gsi1("{user}", "LIKE#{created_at}"))
class Like:
    post: Post
    user: User
    created_at: datetime


graph = Graph(
    Table("social-app-table", partition_key="PK", sort_key="SK", indexes=[gsi1]),
    User,
    Feed,
    Post,
    Comment,
    Like,
    attribute_case="camel",
)

ITEMS = """
{"PK": "USER#u1", "SK": "PROFILE", "GSI1PK": "USER#u1", "GSI1SK": "PROFILE", "name": "Ada"}
{"PK": "USER#u2", "SK": "PROFILE", "GSI1PK": "USER#u2", "GSI1SK": "PROFILE", "name": "Ben"}
{"PK": "POST#p1", "SK": "POST", "GSI1PK": "FEED#GLOBAL", "GSI1SK": "POST#2024-05-01T10:00:00Z", "authorId": "u1", "text": "Hello", "createdAt": "2024-05-01T10:00:00Z"}
{"PK": "POST#p2", "SK": "POST", "GSI1PK": "FEED#GLOBAL", "GSI1SK": "POST#2024-05-02T10:00:00Z", "authorId": "u2", "text": "Well", "createdAt": "2024-05-02T10:00:00Z"}
{"PK": "POST#p1", "SK": "COMMENT#c1", "GSI1PK": "POST#p1", "GSI1SK": "COMMENT#2024-05-01T11:00:00Z", "authorId": "u2", "text": "Hi", "createdAt": "2024-05-01T11:00:00Z"}
{"PK": "POST#p1", "SK": "LIKE#u2", "GSI1PK": "USER#u2", "GSI1SK": "LIKE#2024-05-01T12:00:00Z", "createdAt": "2024-05-01T12:00:00Z"}
{"PK": "POST#p2", "SK": "LIKE#u1", "GSI1PK": "USER#u1", "GSI1SK": "LIKE#2024-05-03T12:00:00Z", "createdAt": "2024-05-03T12:00:00Z"}
"""

ASKED = """
The feed, newest first
{ feed(feedId: "GLOBAL") { posts(direction: DESC) { nodes { text author { name } } } } }
{"feed": {"posts": {"nodes": [{"text": "Well", "author": {"name": "Ben"}}, {"text": "Hello", "author": {"name": "Ada"}}]}}}

What a user likes
{ user(userId: "u2") { likes { nodes { text comments { totalCount } } } } }
{"user": {"likes": {"nodes": [{"text": "Hello", "comments": {"totalCount": 1}}]}}}
"""
