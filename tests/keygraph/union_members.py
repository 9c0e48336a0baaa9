"""Nodes that the tests of unions join: keys of different shapes, and two that are alike."""

from __future__ import annotations

from keygraph import ID, node


@node("USER#{user_id}")
class User:
    user_id: ID


@node("ORG#{country}#{number:03d}")
class Organization:
    country: ID
    number: int


@node("ACCOUNT#{login}")
class Person:
    login: ID


@node("ACCOUNT#{login}")
class Company:
    login: ID
