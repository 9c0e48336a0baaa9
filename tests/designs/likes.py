"""Likes behind a prefix of their own, by whom and of what. A usual design: a partition for each list of a person."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, edge, node

liked = Index("liked", "target", "at")


@node("user/{user_id}", "user")
class User:
    user_id: ID
    name: str
    likes: Many[Like]
    following: Many[Follow]


@node("post/{post_id}", "post")
class Post:
    post_id: ID
    text: str
    likes: Many[Like]


@edge("like/{user.user_id}", "{post}", liked("{post}"))
class Like:
    user: User
    post: Post
    at: datetime


@edge("follow/{follower.user_id}", "{followed}")
class Follow:
    follower: User
    followed: User


graph = Graph(Table("likes", partition_key="pk", sort_key="sk", indexes=[liked]), User, Post, Like, Follow)

ITEMS = """
{"pk": "user/ada", "sk": "user", "name": "Ada"}
{"pk": "user/ben", "sk": "user", "name": "Ben"}
{"pk": "post/p100", "sk": "post", "text": "Hello"}
{"pk": "post/p200", "sk": "post", "text": "Well"}
{"pk": "like/ada", "sk": "post/p100", "target": "post/p100", "at": "2024-05-01T10:00:00Z"}
{"pk": "like/ada", "sk": "post/p200", "target": "post/p200", "at": "2024-05-02T10:00:00Z"}
{"pk": "like/ben", "sk": "post/p100", "target": "post/p100", "at": "2024-05-03T10:00:00Z"}
{"pk": "follow/ada", "sk": "user/ben"}
{"pk": "follow/ben", "sk": "user/ada"}
"""

ASKED = """
What a person likes, and who likes a post
{ user(userId: "ada") { likes { nodes { text } } following { nodes { name } } } post(postId: "p100") { likes(direction: DESC) { nodes { name } } } }
{"user": {"likes": {"nodes": [{"text": "Hello"}, {"text": "Well"}]}, "following": {"nodes": [{"name": "Ben"}]}}, "post": {"likes": {"nodes": [{"name": "Ben"}, {"name": "Ada"}]}}}
"""
