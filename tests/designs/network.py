"""A social network: each list of a user or a post has a partition of its own, and counts are items.

From the schema examples of AWS (aws-dynamodb-examples, social network).
"""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Epoch, Graph, Long, Many, One, Table, edge, many, node, one, record, stored


@node("u#{user_id}", '"info"')
class User:
    user_id: ID
    name: str
    content: str
    counts: One[UserCounts] = one()
    followers: Many[Follower] = many(at="user")
    following: Many[Following] = many(at="user")
    posts: Many[Written]
    timeline: Many[Entry] = many(at="reader")


@node("p#{post_id}", item=False)
class Post:
    post_id: ID
    likes: Many[Like]
    like_count: One[LikeCount] = one()


@record("{user}", '"count"')
class UserCounts:
    user: User
    followers: Long = stored("follower#")
    following: Long = stored("following#")
    posts: Long = stored("post#")


@edge("{user}#follower", "{follower}")
class Follower:
    user: User
    follower: User


@edge("{user}#following", "{followed}")
class Following:
    user: User
    followed: User


@edge("{author}#post", "{post}")
class Written:
    author: User
    post: Post
    content: str
    written: datetime = stored("timestamp")


@edge("{post}#likelist", "{user}")
class Like:
    post: Post
    user: User


@record("{post}#likecount", '"count"')
class LikeCount:
    post: Post
    likes: Long = stored("etc")


@record("{reader}#timeline", "{post}#{author}")
class Entry:
    reader: User
    post: Post
    author: User
    expires: datetime = stored("ttl")


graph = Graph(
    Table("SNS", partition_key="PK", sort_key="SK"),
    User,
    Post,
    UserCounts,
    Follower,
    Following,
    Written,
    Like,
    LikeCount,
    Entry,
    formats={datetime: Epoch()},
)

ITEMS = r"""
{"PK": "u#12345", "SK": "\"info\"", "name": "hyuklee", "content": "My name is Hyuk Lee"}
{"PK": "u#12345", "SK": "\"count\"", "follower#": 3000000000, "following#": 971, "post#": 4945}
{"PK": "u#34567", "SK": "\"info\"", "name": "ann", "content": "hello"}
{"PK": "u#56789", "SK": "\"info\"", "name": "bob", "content": "hi"}
{"PK": "u#12345#follower", "SK": "u#34567"}
{"PK": "u#12345#following", "SK": "u#56789"}
{"PK": "u#12345#post", "SK": "p#12345", "content": "a post", "timestamp": 1571827560}
{"PK": "u#12345#post", "SK": "p#23456", "content": "one more", "timestamp": 1571827561}
{"PK": "p#12345#likelist", "SK": "u#34567"}
{"PK": "p#12345#likelist", "SK": "u#56789"}
{"PK": "p#12345#likecount", "SK": "\"count\"", "etc": 100}
{"PK": "u#12345#timeline", "SK": "p#34567#u#56789", "ttl": 1571827560}
"""

ASKED = """
getUserInfoByUserID
{ user(userId: "12345") { name content counts { followers following posts } } }
{"user": {"name": "hyuklee", "content": "My name is Hyuk Lee", "counts": {"followers": 3000000000, "following": 971, "posts": 4945}}}

getFollowerListByUserID
{ user(userId: "12345") { followers { nodes { userId name } } } }
{"user": {"followers": {"nodes": [{"userId": "34567", "name": "ann"}]}}}

getFollowingListByUserID
{ user(userId: "12345") { following { nodes { name } } } }
{"user": {"following": {"nodes": [{"name": "bob"}]}}}

getPostListByUserID
{ user(userId: "12345") { posts { edges { content written node { postId } } } } }
{"user": {"posts": {"edges": [{"content": "a post", "written": "2019-10-23T10:46:00Z", "node": {"postId": "12345"}}, {"content": "one more", "written": "2019-10-23T10:46:01Z", "node": {"postId": "23456"}}]}}}

getUserLikesByPostID
{ post(postId: "12345") { likes { nodes { name } } } }
{"post": {"likes": {"nodes": [{"name": "ann"}, {"name": "bob"}]}}}

getLikeCountByPostID
{ post(postId: "12345") { likeCount { likes } } }
{"post": {"likeCount": {"likes": 100}}}

getTimelineByUserID
{ user(userId: "12345") { timeline { nodes { expires post { postId } author { name } } } } }
{"user": {"timeline": {"nodes": [{"expires": "2019-10-23T10:46:00Z", "post": {"postId": "34567"}, "author": {"name": "bob"}}]}}}
"""
