"""Channels whose messages are in buckets, answers to messages, and an inbox of channels with what each member has read.

After published designs of chats: a marker is a number in the member's item, and what is unread is a range behind it.
"""

from __future__ import annotations

from datetime import datetime

from keygraph import (
    ID,
    Epoch,
    Format,
    Graph,
    Index,
    Many,
    Table,
    copy,
    edge,
    field,
    many,
    node,
    record,
    stored,
)

inbox = Index("inbox", "ip", "is")
pins = Index("pins", "p", ("pin", "N"), local=True)
mentions = Index("mentions", "mp", "ms", projection=["a"])


@node("u|{handle:[a-z0-9_]+}", "u")
class Person:
    handle: ID
    name: str = stored("n")
    inbox: Many[Member] = many(index=inbox)
    mentions: Many[Message] = many(index=mentions)
    drafts: Many[Draft]


@node("c|{channel_id}", "c", gather=True)
class Channel:
    channel_id: ID
    topic: str | None = stored("n")
    last: int = stored("l", default=0)
    members: Many[Member] = many(index=None)
    messages: Many[Message | Notice]
    spoken: Many[Message] = many(index=None)
    pinned: Many[Message] = many(index=pins)


@edge("{channel}", "~{person.handle}", inbox("{person}", "{slot}|{active:newest}|{channel.channel_id}"))
class Member:
    channel: Channel
    person: Person
    read: int = stored("r", default=0)
    active: datetime = stored("at")
    is_favorite: bool = stored("f", default=False)
    is_muted: bool = stored("q", default=False)

    @field(needs=("is_favorite", "is_muted"))
    def slot(self) -> str | None:
        """Where the channel is in the inbox: what is muted is in none."""
        return None if self.is_muted else "0" if self.is_favorite else "1"


@node(
    "{channel}",
    "m|{seq:b36}",
    mentions("{mentioned}", "{at:newest}"),
    type={"a": {"exists": True}, "e": None},
)
class Message:
    channel: Channel
    seq: int
    author: Person = stored("a")
    at: datetime = stored("at")
    text: str = stored("x")
    pin: int | None = stored("pin")
    mentioned: Person | None = stored("to")
    author_name: str = copy("author.name", "an")
    answers: Many[Answer]
    reactions: Many[Reaction]


@record("{channel}", "m|{seq:b36}", type={"e": {"exists": True}})
class Notice:
    channel: Channel
    seq: int
    event: str = stored("e")


@record("t|{message.channel.channel_id}|{message.seq:b36}", "a|{at:ms}|{author.handle}")
class Answer:
    message: Message = stored(channel_id="cid", seq="mseq")
    author: Person = stored("by")
    at: datetime
    text: str = stored("x")


@edge("t|{message.channel.channel_id}|{message.seq:b36}", "r|{emoji}|{person.handle}")
class Reaction:
    message: Message = stored(channel_id="cid", seq="mseq")
    person: Person
    emoji: str


@record("{person}", "d|{channel.channel_id}")
class Draft:
    person: Person
    channel: Channel
    text: str = stored("x")


graph = Graph(
    Table("Chat", partition_key="p", sort_key="s", indexes=[inbox, pins, mentions]),
    Person,
    Channel,
    Member,
    Message,
    Notice,
    Answer,
    Reaction,
    Draft,
    separator="|",
    formats={
        "b36": Format.base(36, width=4, upper=True),
        "ms": Epoch("ms", text=True),
        "newest": Format.reversed(9_999_999_999_999, of=Epoch("ms")),
    },
    writes=True,
)

ITEMS = """
{"p": "u|ada", "s": "u", "n": "Ada"}
{"p": "u|ben", "s": "u", "n": "Ben"}
{"p": "c|gen", "s": "c", "n": "General", "l": 38}
{"p": "c|keys", "s": "c"}
{"p": "c|gen", "s": "~ada", "ip": "u|ada", "is": "0|8285478399999|gen", "r": 36, "at": "2024-05-01T00:00:00Z", "f": true}
{"p": "c|keys", "s": "~ada", "ip": "u|ada", "is": "1|8285478398999|keys", "at": "2024-05-01T00:00:01Z"}
{"p": "c|gen", "s": "~ben", "q": true, "r": 38, "at": "2024-05-01T00:00:00.5Z"}
{"p": "c|gen", "s": "m|0001", "a": "ada", "an": "Ada", "at": "2024-04-30T00:00:00Z", "x": "Hi", "pin": 2}
{"p": "c|gen", "s": "m|0010", "a": "ben", "an": "Ben", "at": "2024-05-01T00:00:00Z", "x": "@ada", "to": "ada", "mp": "u|ada", "ms": "8285478399999", "pin": 1}
{"p": "c|gen", "s": "m|0011", "e": "joined"}
{"p": "c|gen", "s": "m|0012", "a": "ada", "an": "Ada", "at": "2024-05-01T00:00:00.5Z", "x": "Yes"}
{"p": "t|gen|0010", "s": "a|1714521601000|ada", "x": "ok"}
{"p": "t|gen|0010", "s": "a|1714521601250|ben", "x": "fine"}
{"p": "t|gen|0010", "s": "r|+1|ada"}
{"p": "t|gen|0010", "s": "r|+1|ben"}
{"p": "t|gen|0010", "s": "r|heart|ada"}
{"p": "u|ada", "s": "d|gen", "x": "I think"}
"""

ASKED = """
The inbox of a person: favorites, then the newest
{ person(handle: "ada") { name inbox { edges { read slot node { channelId topic last } } } } ben: person(handle: "ben") { inbox { totalCount } } }
{"person": {"name": "Ada", "inbox": {"edges": [{"read": 36, "slot": "0", "node": {"channelId": "gen", "topic": "General", "last": 38}}, {"read": 0, "slot": "1", "node": {"channelId": "keys", "topic": null, "last": 0}}]}}, "ben": {"inbox": {"totalCount": 0}}}

What is unread behind the marker
{ channel(channelId: "gen") { spoken(seq: {from: 37}) { totalCount nodes { seq text } } } }
{"channel": {"spoken": {"totalCount": 1, "nodes": [{"seq": 38, "text": "Yes"}]}}}

The last of a channel, with what happened between
{ channel(channelId: "gen") { topic messages(last: 3) { totalCount nodes { ... on Message { seq authorName } ... on Notice { event } } } } }
{"channel": {"topic": "General", "messages": {"totalCount": 4, "nodes": [{"seq": 36, "authorName": "Ben"}, {"event": "joined"}, {"seq": 38, "authorName": "Ada"}]}}}

A message with its answers and reactions
{ message(channelId: "gen", seq: 36) { text author { name } answers { nodes { at text author { handle } } } reactions(emoji: {eq: "+1"}) { totalCount nodes { handle } } hearts: reactions(emoji: {beginsWith: "h"}) { edges { emoji node { name } } } } }
{"message": {"text": "@ada", "author": {"name": "Ben"}, "answers": {"nodes": [{"at": "2024-05-01T00:00:01Z", "text": "ok", "author": {"handle": "ada"}}, {"at": "2024-05-01T00:00:01.250000Z", "text": "fine", "author": {"handle": "ben"}}]}, "reactions": {"totalCount": 2, "nodes": [{"handle": "ada"}, {"handle": "ben"}]}, "hearts": {"edges": [{"emoji": "heart", "node": {"name": "Ada"}}]}}}

Answers since a moment within a second
{ message(channelId: "gen", seq: 36) { answers(at: {from: "2024-05-01T00:00:01.001Z"}) { nodes { text } } none: answers(at: {to: "2024-05-01T00:00:00.999Z"}) { totalCount } } }
{"message": {"answers": {"nodes": [{"text": "fine"}]}, "none": {"totalCount": 0}}}

Where a person is mentioned
{ person(handle: "ada") { mentions(at: {from: "2024-05-01T00:00:00Z"}) { nodes { seq text author { name } channel { topic } } } } }
{"person": {"mentions": {"nodes": [{"seq": 36, "text": "@ada", "author": {"name": "Ben"}, "channel": {"topic": "General"}}]}}}

What is pinned, in its order
{ channel(channelId: "gen") { pinned { nodes { pin text } } } }
{"channel": {"pinned": {"nodes": [{"pin": 1, "text": "@ada"}, {"pin": 2, "text": "Hi"}]}}}

Whether somebody is in a channel, and what all have read
{ channel(channelId: "gen") { is: members(to: ["ben", "cy"]) { edges { isMuted active } } members { edges { read node { handle } } aggregate { min(field: READ) } } } }
{"channel": {"is": {"edges": [{"isMuted": true, "active": "2024-05-01T00:00:00.5Z"}]}, "members": {"edges": [{"read": 36, "node": {"handle": "ada"}}, {"read": 38, "node": {"handle": "ben"}}], "aggregate": {"min": 36}}}}

What a person has begun to write
{ person(handle: "ada") { drafts { nodes { text channel { topic } } } } }
{"person": {"drafts": {"nodes": [{"text": "I think", "channel": {"topic": "General"}}]}}}

The answers of a person
{ person(handle: "ada") { answers { nodes { text } } } }
An answer is in its message's partition alone: an index of authors would find it.
"""

WRITES = """
A message is said: the channel's last number, the marker and the place in the inbox
mutation { write(input: {actions: [{createMessage: {channelId: "keys", seq: 1, authorHandle: "ada", at: "2024-05-02T00:00:00Z", text: "Keys!"}}, {updateChannel: {channelId: "keys", add: {last: 1}}}, {updateMember: {channelId: "keys", personHandle: "ada", read: 1, active: "2024-05-02T00:00:00.001Z"}}, {deleteDraft: {personHandle: "ada", channelId: "gen"}}]}) { clientMutationId } }
{ channel(channelId: "keys") { last messages { nodes { ... on Message { authorName } } } } person(handle: "ada") { inbox(slot: {eq: "1"}) { edges { read active } } drafts { totalCount } } }
{"channel": {"last": 1, "messages": {"nodes": [{"authorName": "Ada"}]}}, "person": {"inbox": {"edges": [{"read": 1, "active": "2024-05-02T00:00:00.001Z"}]}, "drafts": {"totalCount": 0}}}

Two say something at once: the number is taken
mutation { createMessage(input: {channelId: "gen", seq: 38, authorHandle: "ben", at: "2024-05-02T00:00:00Z", text: "late"}) { message { seq } } }
There is already a Message with this key.

A notice has it
mutation { createMessage(input: {channelId: "gen", seq: 37, authorHandle: "ben", at: "2024-05-02T00:00:00Z", text: "late"}) { message { seq } } }
There is already a Notice with this key.

A notice in the place of a message
mutation { putNotice(input: {channelId: "gen", seq: 36, event: "left"}) { created } }
There is already a Message with this key.

A notice is no message to change
mutation { updateMessage(input: {channelId: "gen", seq: 37, text: "x"}) { message { seq } } }
There is no Message with this key.

And none to delete
mutation { deleteMessage(input: {channelId: "gen", seq: 37, onEdges: DETACH}) { detached } }
There is no Message with this key.

A channel becomes a favorite, and one is muted
mutation { one: updateMember(input: {channelId: "keys", personHandle: "ada", isFavorite: true}) { member { slot } } two: updateMember(input: {channelId: "gen", personHandle: "ada", isMuted: true}) { member { slot } } three: updateMember(input: {channelId: "gen", personHandle: "ben", isMuted: false}) { member { slot } } }
{ person(handle: "ada") { inbox { nodes { channelId } } } ben: person(handle: "ben") { inbox(slot: {eq: "1"}, active: {from: "2024-05-01T00:00:00.5Z"}) { nodes { channelId } } } }
{"person": {"inbox": {"nodes": [{"channelId": "keys"}]}}, "ben": {"inbox": {"nodes": [{"channelId": "gen"}]}}}

Everything is read, and never less
mutation { updateMember(input: {channelId: "gen", personHandle: "ada", read: 38}) { member { read channel { last } } } }
{ channel(channelId: "gen") { members(where: {read: {lt: 38}}) { totalCount } } }
{"channel": {"members": {"totalCount": 0}}}

A reaction, again, and taken back
mutation { one: createReaction(input: {message: {channelId: "gen", seq: 38}, personHandle: "ben", emoji: "+1"}) { reaction { emoji } } two: upsertReaction(input: {message: {channelId: "gen", seq: 38}, personHandle: "ben", emoji: "+1"}) { created } three: deleteReaction(input: {message: {channelId: "gen", seq: 36}, emoji: "heart", personHandle: "ada"}) { clientMutationId } }
{ message(channelId: "gen", seq: 38) { reactions { edges { emoji node { name } } } } other: message(channelId: "gen", seq: 36) { reactions { totalCount } } }
{"message": {"reactions": {"edges": [{"emoji": "+1", "node": {"name": "Ben"}}]}}, "other": {"reactions": {"totalCount": 2}}}

A reaction to a notice
mutation { createReaction(input: {message: {channelId: "gen", seq: 37}, personHandle: "ben", emoji: "+1"}) { reaction { emoji } } }
message: there is no Message with this key.

A pin is taken off, and a mention goes to another
mutation { one: updateMessage(input: {channelId: "gen", seq: 1, pin: null}) { message { pin } } two: updateMessage(input: {channelId: "gen", seq: 36, mentionedHandle: "ben"}) { message { mentioned { name } } } }
{ channel(channelId: "gen") { pinned { nodes { seq } } } ada: person(handle: "ada") { mentions { totalCount } } ben: person(handle: "ben") { mentions { nodes { seq at } } } }
{"channel": {"pinned": {"nodes": [{"seq": 36}]}}, "ada": {"mentions": {"totalCount": 0}}, "ben": {"mentions": {"nodes": [{"seq": 36, "at": "2024-05-01T00:00:00Z"}]}}}

A message with answers goes
mutation { deleteMessage(input: {channelId: "gen", seq: 36}) { deletedId } }
This Message cannot be deleted. It is named by 2 Answers (message), 2 Reactions (message).

With them
mutation { deleteMessage(input: {channelId: "gen", seq: 36, onEdges: DETACH}) { detached } }
{ channel(channelId: "gen") { messages { nodes { ... on Message { seq } ... on Notice { event } } } pinned { totalCount } } ben: person(handle: "ben") { mentions { totalCount } } }
{"channel": {"messages": {"nodes": [{"seq": 1}, {"event": "joined"}, {"seq": 38}]}, "pinned": {"totalCount": 0}}, "ben": {"mentions": {"totalCount": 0}}}

A handle that is none
mutation { createPerson(input: {handle: "Ada", name: "Ada"}) { person { handle } } }
handle of Person has a value that its key cannot hold: its text must fit [a-z0-9_]+
"""
