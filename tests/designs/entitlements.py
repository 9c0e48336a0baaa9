"""What customers of a service may use: plans in versions, features, grants that expire, quotas, seats and keys by their hashes.

After published designs of entitlement services: one Query says what an organization may do, one condition holds its quota.
"""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum

from keygraph import (
    ID,
    Epoch,
    Format,
    Graph,
    Index,
    Long,
    Many,
    Table,
    counts,
    created,
    edge,
    many,
    node,
    record,
    rule,
    stored,
    ttl,
)

by_feature = Index("feature-lookup", "fpk", "fsk")
by_user = Index("orgs-of-user", "holder", "pk")
renewals = Index("renewals", "renewBucket", ("renewsAt", "N"))
by_hash = Index("key-by-hash", ("digest", "B"), projection=["scopes"])


class Kind(Enum):
    SWITCH = 0
    QUOTA = 1


@node("plan/{code:[a-z]+}", "v{revision:03d}", lists="versions_of")
class Plan:
    code: ID
    revision: int
    title: str
    monthly_cents: int
    features: Many[PlanFeature]


@node("feature/{name}", "meta")
class Feature:
    name: ID
    kind: Kind = Kind.SWITCH
    plans: Many[PlanFeature] = many(index=by_feature)
    grants: Many[Grant] = many(index=by_feature)


@edge(
    "plan/{plan.code}",
    "v{plan.revision:03d}/{feature.name}",
    by_feature("{feature}", "plan/{plan.code}/{plan.revision:03d}"),
)
class PlanFeature:
    plan: Plan = stored(code="planCode", revision="planRevision")
    feature: Feature
    limit: Long | None


@node(
    "org/{org_id}",
    "#",
    renewals("renew/{shard}", "{renews}", lists="renewals", shards=["a", "b"]),
    gather=True,
)
class Org:
    org_id: ID
    plan: Plan = stored(code="planCode", revision="planRevision")
    renews: datetime | None = stored("renewsAt", format=Epoch())
    seats_max: int = stored("limits", "seats", default=5)
    seats_used: int = counts("seats")
    grants: Many[Grant] = many(index=None)
    quotas: Many[Quota]
    seats: Many[Seat]
    keys: Many[ApiKey]


@node("user/{user_id}", "#")
class User:
    user_id: ID
    email: str
    orgs: Many[Seat]


@record("{org}", "grant/{feature.name}", by_feature("{feature}", "org/{org.org_id}"))
class Grant:
    org: Org
    feature: Feature
    reason: str
    until: datetime | None = ttl("exp")


@record(
    "{org}",
    "quota/{feature.name}/{month:month}",
    check=[rule({"left": {"gte": 0}}, "The quota of the month is used up.")],
)
class Quota:
    org: Org
    feature: Feature
    month: date
    left: Long = 100
    used: Long = 0


@edge("{org}", "{user}")
class Seat:
    org: Org
    user: User = stored("holder")
    role: str = "member"
    since: datetime = created()


@record("{org}", "key/{number:02d}", by_hash(finds="key_by_hash"))
class ApiKey:
    org: Org
    number: int
    hash: bytes = stored("digest")
    scopes: set[str]


graph = Graph(
    Table(
        "Entitlements", partition_key="pk", sort_key="sk", indexes=[by_feature, by_user, renewals, by_hash]
    ),
    Plan,
    Feature,
    PlanFeature,
    Org,
    User,
    Grant,
    Quota,
    Seat,
    ApiKey,
    attribute_case="camel",
    separator="/",
    formats={
        "month": Format(
            lambda day: f"{day:%Y%m}",
            lambda text: date(int(text[:4]), int(text[4:]), 1),
            ordered=True,
            pattern=r"\d{6}",
        )
    },
    writes=True,
)

ITEMS = """
{"pk": "plan/pro", "sk": "v001", "title": "Pro", "monthlyCents": 2900}
{"pk": "plan/pro", "sk": "v002", "title": "Pro 2024", "monthlyCents": 3900}
{"pk": "plan/free", "sk": "v001", "title": "Free", "monthlyCents": 0}
{"pk": "feature/sso", "sk": "meta"}
{"pk": "feature/exports", "sk": "meta", "kind": 1}
{"pk": "feature/beta-api", "sk": "meta"}
{"pk": "plan/pro", "sk": "v002/exports", "fpk": "feature/exports", "fsk": "plan/pro/002", "limit": 5000000000}
{"pk": "plan/pro", "sk": "v002/sso", "fpk": "feature/sso", "fsk": "plan/pro/002"}
{"pk": "plan/free", "sk": "v001/exports", "fpk": "feature/exports", "fsk": "plan/free/001", "limit": 3}
{"pk": "org/acme", "sk": "#", "planCode": "pro", "planRevision": 2, "renewBucket": "renew/b", "renewsAt": 1719792000, "limits": {"seats": 2}, "seatsUsed": 2}
{"pk": "org/beta", "sk": "#", "planCode": "free", "planRevision": 1, "seatsUsed": 0}
{"pk": "org/core", "sk": "#", "planCode": "pro", "planRevision": 1, "renewBucket": "renew/a", "renewsAt": 1719878400, "seatsUsed": 0}
{"pk": "user/7", "sk": "#", "email": "ada@x.org"}
{"pk": "user/8", "sk": "#", "email": "ben@x.org"}
{"pk": "org/acme", "sk": "user/7", "holder": "7", "role": "owner", "since": "2024-01-01T00:00:00Z"}
{"pk": "org/acme", "sk": "user/8", "holder": "8", "since": "2024-01-02T00:00:00Z"}
{"pk": "org/acme", "sk": "grant/beta-api", "fpk": "feature/beta-api", "fsk": "org/acme", "reason": "old", "exp": 1700000000}
{"pk": "org/beta", "sk": "grant/sso", "fpk": "feature/sso", "fsk": "org/beta", "reason": "trial", "exp": 4102444800}
{"pk": "org/acme", "sk": "quota/exports/202405", "left": 0, "used": 9}
{"pk": "org/acme", "sk": "quota/exports/202406", "left": 2, "used": 7}
{"pk": "org/acme", "sk": "key/01", "digest": "3q2+7w==", "scopes": ["read", "write"]}
"""

ASKED = """
What an organization may use: its plan, its grants and its quotas
{ org(orgId: "acme") { plan { title features { edges { limit node { name kind } } } } grants { totalCount } quotas(featureName: {eq: "exports"}, month: {eq: "2024-06-01"}) { nodes { left used } } } }
{"org": {"plan": {"title": "Pro 2024", "features": {"edges": [{"limit": 5000000000, "node": {"name": "exports", "kind": "QUOTA"}}, {"limit": null, "node": {"name": "sso", "kind": "SWITCH"}}]}}, "grants": {"totalCount": 0}, "quotas": {"nodes": [{"left": 2, "used": 7}]}}}

Whether a plan has a feature
{ plan(code: "pro", revision: 2) { features(to: ["sso", "audit"]) { nodes { name } } } plans: plan(code: "free", revision: 1) { features(featureName: {eq: "sso"}) { totalCount } } }
{"plan": {"features": {"nodes": [{"name": "sso"}]}}, "plans": {"features": {"totalCount": 0}}}

The newest version of a plan
{ versionsOf(code: "pro", last: 1) { nodes { revision monthlyCents } } }
{"versionsOf": {"nodes": [{"revision": 2, "monthlyCents": 3900}]}}

Which plans and which organizations have a feature
{ feature(name: "exports") { plans { edges { limit node { code revision } } } grants { nodes { org { orgId } } } } sso: feature(name: "sso") { grants { nodes { reason until org { orgId plan { title } } } } } }
{"feature": {"plans": {"edges": [{"limit": 3, "node": {"code": "free", "revision": 1}}, {"limit": 5000000000, "node": {"code": "pro", "revision": 2}}]}, "grants": {"nodes": []}}, "sso": {"grants": {"nodes": [{"reason": "trial", "until": "2100-01-01T00:00:00Z", "org": {"orgId": "beta", "plan": {"title": "Free"}}}]}}}

The quotas of a feature over some months
{ org(orgId: "acme") { quotas(featureName: {eq: "exports"}, month: {from: "2024-05-01", to: "2024-05-31"}) { nodes { month left used } } } }
{"org": {"quotas": {"nodes": [{"month": "2024-05-01", "left": 0, "used": 9}]}}}

Who has a seat, and how many are left
{ org(orgId: "acme") { seatsMax seatsUsed seats { edges { role node { userId email } } } } }
{"org": {"seatsMax": 2, "seatsUsed": 2, "seats": {"edges": [{"role": "owner", "node": {"userId": "7", "email": "ada@x.org"}}, {"role": "member", "node": {"userId": "8", "email": "ben@x.org"}}]}}}

The organizations of a user
{ user(userId: "8") { orgs { edges { since node { orgId plan { code } } } } } }
{"user": {"orgs": {"edges": [{"since": "2024-01-02T00:00:00Z", "node": {"orgId": "acme", "plan": {"code": "pro"}}}]}}}

Whose key a request has
{ keyByHash(hash: "3q2+7w==") { number scopes org { orgId } } nobody: keyByHash(hash: "AAAA") { number } }
{"keyByHash": {"number": 1, "scopes": ["read", "write"], "org": {"orgId": "acme"}}, "nobody": null}

What renews in a window, over the buckets
{ renewals(renews: {from: "2024-07-01T00:00:00Z", to: "2024-07-02T00:00:00Z"}) { nodes { orgId renews } } first: renewals(renews: {to: "2024-07-01T12:00:00Z"}) { nodes { orgId } } }
{"renewals": {"nodes": [{"orgId": "acme", "renews": "2024-07-01T00:00:00Z"}, {"orgId": "core", "renews": "2024-07-02T00:00:00Z"}]}, "first": {"nodes": [{"orgId": "acme"}]}}

Organizations that have used most of their quotas
{ quotasAlmostUsed(month: "2024-06-01") { nodes { orgId } } }
No key has how much of a quota is left: a report reads an export of the table.
"""

WRITES = """
An export is counted while there are some left
mutation { updateQuota(input: {orgId: "acme", featureName: "exports", month: "2024-06-01", add: {left: -2, used: 2}}) { quota { left used } } }
{ org(orgId: "acme") { quotas(featureName: {eq: "exports"}) { nodes { left } } } }
{"org": {"quotas": {"nodes": [{"left": 0}, {"left": 0}]}}}

And one more
mutation { updateQuota(input: {orgId: "acme", featureName: "exports", month: "2024-06-01", add: {left: -1, used: 1}}) { quota { left } } }
The quota of the month is used up.

A month begins: the quota is made once, and never below zero
mutation { one: upsertQuota(input: {orgId: "acme", featureName: "exports", month: "2024-07-01", used: 0}) { created } two: upsertQuota(input: {orgId: "acme", featureName: "exports", month: "2024-07-01", add: {left: -1, used: 1}}) { created quota { month left used } } }
{ org(orgId: "acme") { quotas(featureName: {eq: "exports"}, month: {from: "2024-07-01"}) { nodes { month left used } } } }
{"org": {"quotas": {"nodes": [{"month": "2024-07-01", "left": 99, "used": 1}]}}}

A trial of a feature, over an expired one
mutation { one: putGrant(input: {orgId: "acme", featureName: "sso", reason: "trial", until: "2100-01-01T00:00:00Z"}) { created } two: createGrant(input: {orgId: "acme", featureName: "exports", reason: "support"}) { grant { until } } }
{ feature(name: "sso") { grants { nodes { org { orgId } } } } org(orgId: "acme") { grants { nodes { feature { name } reason } } } }
{"feature": {"grants": {"nodes": [{"org": {"orgId": "acme"}}, {"org": {"orgId": "beta"}}]}}, "org": {"grants": {"nodes": [{"feature": {"name": "exports"}, "reason": "support"}, {"feature": {"name": "sso"}, "reason": "trial"}]}}}

A grant of a feature that is not there
mutation { putGrant(input: {orgId: "acme", featureName: "beta", reason: "x"}) { created } }
featureName: there is no Feature with this key.

An organization changes to a plan, and renews
mutation { updateOrg(input: {orgId: "beta", plan: {code: "pro", revision: 2}, renews: "2024-07-01T10:00:00Z"}) { org { plan { monthlyCents } } } }
{ renewals(renews: {to: "2024-07-01T23:59:59Z"}) { nodes { orgId } } }
{"renewals": {"nodes": [{"orgId": "acme"}, {"orgId": "beta"}]}}

To a version that is not there
mutation { updateOrg(input: {orgId: "beta", plan: {code: "pro", revision: 9}}) { org { orgId } } }
plan: there is no Plan with this key.

A subscription is cancelled
mutation { updateOrg(input: {orgId: "acme", renews: null, seatsMax: 9}) { org { seatsMax renews } } }
{ renewals { nodes { orgId } } }
{"renewals": {"nodes": [{"orgId": "beta"}, {"orgId": "core"}]}}

A seat goes from one user to another
mutation { write(input: {actions: [{deleteSeat: {orgId: "acme", userId: "8"}}, {createUser: {userId: "9", email: "cy@x.org"}}, {createSeat: {orgId: "acme", userId: "9", role: "admin"}}]}) { clientMutationId } }
{ org(orgId: "acme") { seatsUsed seats(to: ["8", "9"]) { edges { role node { email } } } } user(userId: "9") { orgs { nodes { orgId } } } }
{"org": {"seatsUsed": 2, "seats": {"edges": [{"role": "admin", "node": {"email": "cy@x.org"}}]}}, "user": {"orgs": {"nodes": [{"orgId": "acme"}]}}}

A key is replaced
mutation { updateApiKey(input: {orgId: "acme", number: 1, hash: "AAEC", remove: {scopes: ["write"]}}) { apiKey { scopes } } }
{ keyByHash(hash: "3q2+7w==") { number } new: keyByHash(hash: "AAEC") { scopes org { orgId } } }
{"keyByHash": null, "new": {"scopes": ["read"], "org": {"orgId": "acme"}}}

A new version of a plan with its features
mutation { createPlan(input: {code: "pro", revision: 3, title: "Pro 2025", monthlyCents: 4900, features: [{featureName: "sso"}, {featureName: "exports", limit: 9000000000}]}) { plan { features { edges { limit } } } } }
{ versionsOf(code: "pro", last: 1) { nodes { features(featureName: {beginsWith: "e"}) { edges { limit } } } } feature(name: "sso") { plans { nodes { revision } } } }
{"versionsOf": {"nodes": [{"features": {"edges": [{"limit": 9000000000}]}}]}, "feature": {"plans": {"nodes": [{"revision": 2}, {"revision": 3}]}}}

A quota for a part of a month
mutation { createQuota(input: {orgId: "acme", featureName: "exports", month: "2024-08-15"}) { quota { left } } }
month of Quota would have another value in its key

An id with the separator
mutation { createOrg(input: {orgId: "a/b", plan: {code: "pro", revision: 1}}) { org { orgId } } }
orgId of Org has a value that its key cannot hold: its text must fit [^/]+
"""
