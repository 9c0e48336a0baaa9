"""A session store: the sort key is a customer or a child session, and one inverted index finds both.

From the schema examples of AWS (aws-dynamodb-examples, session management).
"""

from __future__ import annotations

from keygraph import ID, Graph, Index, Many, Table, edge, many, node

inverse = Index("GSI1_inverse", "SK", "PK")


@node("suuid#{session_id}", item=False)
class Session:
    session_id: ID
    logins: Many[Login]
    children: Many[Child] = many(at="parent")
    parents: Many[Child] = many(at="child")


@node("c#{customer_id}", item=False)
class Customer:
    customer_id: ID
    logins: Many[Login]


@edge("{session}", "{customer}")
class Login:
    session: Session
    customer: Customer
    last_login_time: str
    access_token: str
    session_state: str


@edge("{parent}", "child#{child}")
class Child:
    parent: Session
    child: Session
    access_token: str
    session_state: str


graph = Graph(
    Table("session_store", partition_key="PK", sort_key="SK", indexes=[inverse]),
    Session,
    Customer,
    Login,
    Child,
)

ITEMS = """
{"PK": "suuid#c342", "SK": "c#ABC", "last_login_time": "2023-05-12T11:30:00", "access_token": "d234", "session_state": "active"}
{"PK": "suuid#c342", "SK": "child#suuid#ert5", "access_token": "lko9", "session_state": "active"}
{"PK": "suuid#c342", "SK": "child#suuid#kljh", "access_token": "acg4", "session_state": "closing"}
{"PK": "suuid#d000", "SK": "c#ABC", "last_login_time": "2023-05-14T09:00:00", "access_token": "q010", "session_state": "closing"}
{"PK": "suuid#l221", "SK": "c#XYZ", "last_login_time": "2023-04-30T15:22:09", "access_token": "q213", "session_state": "active"}
{"PK": "suuid#l221", "SK": "child#suuid#ljy2", "access_token": "j143", "session_state": "active"}
"""

ASKED = """
getSessionBySessionId
{ session(sessionId: "c342") { logins(customerId: {eq: "ABC"}) { nodes { customerId } edges { lastLoginTime sessionState } } } }
{"session": {"logins": {"nodes": [{"customerId": "ABC"}], "edges": [{"lastLoginTime": "2023-05-12T11:30:00", "sessionState": "active"}]}}}

getChildSessionsBySessionId
{ session(sessionId: "c342") { children { edges { sessionState node { sessionId } } } } }
{"session": {"children": {"edges": [{"sessionState": "active", "node": {"sessionId": "ert5"}}, {"sessionState": "closing", "node": {"sessionId": "kljh"}}]}}}

getSessionByChildSessionId
{ session(sessionId: "ljy2") { parents { nodes { sessionId logins { nodes { customerId } } } } } }
{"session": {"parents": {"nodes": [{"sessionId": "l221", "logins": {"nodes": [{"customerId": "XYZ"}]}}]}}}

getLastLoginTimeByCustomerId
{ customer(customerId: "ABC") { logins(first: 1) { edges { lastLoginTime } } } }
{"customer": {"logins": {"edges": [{"lastLoginTime": "2023-05-12T11:30:00"}]}}}

getSessionIdByCustomerId
{ customer(customerId: "ABC") { logins(sessionId: {eq: "d000"}) { edges { accessToken node { sessionId } } } } }
{"customer": {"logins": {"edges": [{"accessToken": "q010", "node": {"sessionId": "d000"}}]}}}

getSessionsByCustomerId
{ customer(customerId: "ABC") { logins { totalCount nodes { sessionId } } } }
{"customer": {"logins": {"totalCount": 2, "nodes": [{"sessionId": "c342"}, {"sessionId": "d000"}]}}}

createSession
mutation { putLogin(input: {sessionId: "n1", customerId: "XYZ", lastLoginTime: "2023-06-01T08:00:00", accessToken: "new", sessionState: "active"}) { login { session { logins { edges { accessToken } } } } } }
{"putLogin": {"login": {"session": {"logins": {"edges": [{"accessToken": "new"}]}}}}}

expireSession
mutation { deleteLogin(input: {sessionId: "d000", customerId: "ABC"}) { customer { logins { nodes { sessionId } } } } }
{"deleteLogin": {"customer": {"logins": {"nodes": [{"sessionId": "c342"}]}}}}
"""
