"""Policies with versions, claims in an adjuster's queue, and documents of both: V0000 is the newest, maps hold the loss.

After the version control of items in AWS's guide for DynamoDB, in the shape of an insurer's table.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from keygraph import ID, Format, Graph, Index, Many, Table, field, many, new_id, node, record, rule, stored

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
queue = Index("Queue", "QueuePK", "QueueSK")


@node("CUST#{customer_no:08d}", "CUST")
class Customer:
    customer_no: int
    name: str
    policies: Many[Policy]


@node("ADJ#{adjuster_id}", item=False)
class Adjuster:
    adjuster_id: ID
    claims: Many[Claim] = many(index=queue)


@node(
    "{policy_no:[A-Z]{2}-[0-9]+}",
    "V0000",
    gsi1("{holder}", "POL#{ends}#{policy_no:[A-Z]{2}-[0-9]+}"),
    check=[rule({"premium": {"gt": 0}}, "A premium is more than nothing.")],
)
class Policy:
    policy_no: ID
    holder: Customer
    latest: int = stored("v")
    ends: date
    premium: Decimal
    versions: Many[Version]
    claims: Many[Claim] = many(index=None)
    documents: Many[Document]


@record("{policy}", "V{number:04d}")
class Version:
    policy: Policy
    number: int
    ends: date
    premium: Decimal


@node(
    "{policy.policy_no}",
    "CLAIM#{claim_no:06d}",
    queue("{adjuster}", "{status}#{reserve:largest}"),
    gsi1("{unassigned}", "{reported}", lists="waiting"),
)
class Claim:
    policy: Policy
    claim_no: int
    status: str
    region: str
    reported: date
    reserve: int
    adjuster: Adjuster | None = stored("adj")
    place: str | None = stored("loss", "where", default=None)
    cause: str | None = stored("loss", "cause", default=None)
    notes: Many[Note]

    @field(needs=("adjuster", "region"))
    def unassigned(self) -> str | None:
        return None if self.adjuster else f"OPEN#{self.region}"


@record("{claim.policy.policy_no}", "NOTE#{claim.claim_no:06d}#{note_id}")
class Note:
    claim: Claim
    note_id: ID = new_id()
    text: str


@record("{policy}", "DOC#{kind_of}#{number:03d}#{claim_no?}")
class Document:
    policy: Policy
    kind_of: str
    number: int
    claim_no: str | None = stored(in_key=True)
    uri: str
    tags: set[str] | None


graph = Graph(
    Table("Insurer", partition_key="PK", sort_key="SK", indexes=[gsi1, queue]),
    Customer,
    Adjuster,
    Policy,
    Version,
    Claim,
    Note,
    Document,
    separator="#",
    formats={"largest": Format.reversed(9_999_999)},
    writes=True,
)

ITEMS = """
{"PK": "CUST#00000042", "SK": "CUST", "name": "Ada"}
{"PK": "HO-77", "SK": "V0000", "GSI1PK": "CUST#00000042", "GSI1SK": "POL#2024-12-31#HO-77", "holder_no": 42, "v": 2, "ends": "2024-12-31", "premium": 300}
{"PK": "HO-77", "SK": "V0001", "ends": "2023-12-31", "premium": 280.5}
{"PK": "HO-77", "SK": "V0002", "ends": "2024-12-31", "premium": 300}
{"PK": "AU-5", "SK": "V0000", "GSI1PK": "CUST#00000042", "GSI1SK": "POL#2025-03-01#AU-5", "holder_no": 42, "v": 1, "ends": "2025-03-01", "premium": 90}
{"PK": "AU-5", "SK": "V0001", "ends": "2025-03-01", "premium": 90}
{"PK": "HO-77", "SK": "CLAIM#000001", "QueuePK": "ADJ#kim", "QueueSK": "open#9995000", "status": "open", "region": "north", "reported": "2024-02-01", "reserve": 4999, "adj": "kim", "loss": {"where": "Bonn", "cause": "hail"}}
{"PK": "HO-77", "SK": "CLAIM#000002", "QueuePK": "ADJ#kim", "QueueSK": "open#9899999", "status": "open", "region": "north", "reported": "2024-03-01", "reserve": 100000, "adj": "kim"}
{"PK": "AU-5", "SK": "CLAIM#000001", "GSI1PK": "OPEN#south", "GSI1SK": "2024-04-01", "status": "open", "region": "south", "reported": "2024-04-01", "reserve": 800}
{"PK": "HO-77", "SK": "NOTE#000001#n1", "text": "Roof."}
{"PK": "HO-77", "SK": "DOC#photo#001#000001", "uri": "s3://b/1", "tags": ["roof"]}
{"PK": "HO-77", "SK": "DOC#terms#001#", "uri": "s3://b/2"}
"""

ASKED = """
The newest version of a policy, and its holder
{ policy(policyNo: "HO-77") { latest premium ends holder { customerNo name } } }
{"policy": {"latest": 2, "premium": "300", "ends": "2024-12-31", "holder": {"customerNo": 42, "name": "Ada"}}}

Its versions, and one of them
{ policy(policyNo: "HO-77") { versions { nodes { number premium } } first: versions(number: {eq: 1}) { nodes { premium } } } }
{"policy": {"versions": {"nodes": [{"number": 1, "premium": "280.5"}, {"number": 2, "premium": "300"}]}, "first": {"nodes": [{"premium": "280.5"}]}}}

A customer's policies that end in a year
{ customer(customerNo: 42) { policies(ends: {from: "2025-01-01", to: "2025-12-31"}) { nodes { policyNo latest } } } }
{"customer": {"policies": {"nodes": [{"policyNo": "AU-5", "latest": 1}]}}}

The claims of a policy, with the loss and notes
{ policy(policyNo: "HO-77") { claims { nodes { claimNo place cause notes { nodes { noteId text } } } } } }
{"policy": {"claims": {"nodes": [{"claimNo": 1, "place": "Bonn", "cause": "hail", "notes": {"nodes": [{"noteId": "n1", "text": "Roof."}]}}, {"claimNo": 2, "place": null, "cause": null, "notes": {"nodes": []}}]}}}

One claim
{ claim(policyNo: "AU-5", claimNo: 1) { reserve adjuster { adjusterId } policy { holder { name } } } }
{"claim": {"reserve": 800, "adjuster": null, "policy": {"holder": {"name": "Ada"}}}}

The open claims of an adjuster, largest reserve first
{ adjuster(adjusterId: "kim") { claims(status: {eq: "open"}) { nodes { claimNo reserve } } large: claims(status: {eq: "open"}, reserve: {from: 5000}) { nodes { reserve } } } }
{"adjuster": {"claims": {"nodes": [{"claimNo": 2, "reserve": 100000}, {"claimNo": 1, "reserve": 4999}]}, "large": {"nodes": [{"reserve": 100000}]}}}

Claims of a region that wait for an adjuster
{ waiting(unassigned: "OPEN#south", reported: {to: "2024-12-31"}) { nodes { claimNo policy { policyNo } } } }
{"waiting": {"nodes": [{"claimNo": 1, "policy": {"policyNo": "AU-5"}}]}}

Photos, and documents that belong to no claim
{ policy(policyNo: "HO-77") { documents(kindOf: {eq: "photo"}) { nodes { number claimNo uri tags } } terms: documents(kindOf: {eq: "terms"}, number: {eq: 1}, claimNo: null) { nodes { claimNo uri } } } }
{"policy": {"documents": {"nodes": [{"number": 1, "claimNo": "000001", "uri": "s3://b/1", "tags": ["roof"]}]}, "terms": {"nodes": [{"claimNo": null, "uri": "s3://b/2"}]}}}

The version that was valid on a day
{ policy(policyNo: "HO-77") { validOn(day: "2023-06-01") { premium } } }
Versions are numbered in their keys, not dated: the client filters the few versions by their end.
"""

WRITES = """
A policy is renewed: a new version, and the newest one changed with its index
mutation { write(input: {actions: [{createVersion: {policyNo: "HO-77", number: 3, ends: "2025-12-31", premium: "310"}}, {updatePolicy: {policyNo: "HO-77", latest: 3, ends: "2025-12-31", premium: "310"}}]}) { clientMutationId } }
{ customer(customerNo: 42) { policies { nodes { policyNo latest premium versions(last: 1) { nodes { number premium } } } } } }
{"customer": {"policies": {"nodes": [{"policyNo": "AU-5", "latest": 1, "premium": "90", "versions": {"nodes": [{"number": 1, "premium": "90"}]}}, {"policyNo": "HO-77", "latest": 3, "premium": "310", "versions": {"nodes": [{"number": 3, "premium": "310"}]}}]}}}

A version with the number of the newest one's key
mutation { putVersion(input: {policyNo: "HO-77", number: 0, ends: "2025-12-31", premium: "1"}) { version { number } } }
number of Version would make a key of another shape, "V0000"

A policy with its first version and a claim, at once
mutation { createPolicy(input: {policyNo: "AU-6", holderNo: 42, latest: 1, ends: "2026-01-01", premium: "95", versions: [{number: 1, ends: "2026-01-01", premium: "95"}], claims: [{claimNo: 1, status: "open", region: "south", reported: "2024-05-01", reserve: 10, cause: "ice"}]}) { policy { holder { name } } } }
{ policy(policyNo: "AU-6") { versions { totalCount } claims { nodes { cause place } } } waiting(unassigned: "OPEN#south") { nodes { policy { policyNo } } } }
{"policy": {"versions": {"totalCount": 1}, "claims": {"nodes": [{"cause": "ice", "place": null}]}}, "waiting": {"nodes": [{"policy": {"policyNo": "AU-5"}}, {"policy": {"policyNo": "AU-6"}}]}}

A number of another form
mutation { createPolicy(input: {policyNo: "au-7", holderNo: 42, latest: 1, ends: "2026-01-01", premium: "95"}) { policy { policyNo } } }
policyNo of Policy has a value that its key cannot hold: its text must fit [A-Z]{2}-[0-9]+

A premium of nothing
mutation { updatePolicy(input: {policyNo: "AU-5", premium: "0"}) { policy { policyNo } } }
A premium is more than nothing.

An adjuster takes a claim: it leaves one queue and enters the other
mutation { updateClaim(input: {policyNo: "AU-5", claimNo: 1, adjusterId: "kim", reserve: 60000}) { claim { unassigned } } }
{ waiting(unassigned: "OPEN#south") { nodes { policy { policyNo } } } adjuster(adjusterId: "kim") { claims(status: {eq: "open"}) { nodes { reserve } } } }
{"waiting": {"nodes": [{"policy": {"policyNo": "AU-6"}}]}, "adjuster": {"claims": {"nodes": [{"reserve": 100000}, {"reserve": 60000}, {"reserve": 4999}]}}}

And gives it back
mutation { updateClaim(input: {policyNo: "AU-5", claimNo: 1, adjusterId: null}) { claim { unassigned } } }
{ waiting(unassigned: "OPEN#south") { totalCount } adjuster(adjusterId: "kim") { claims { totalCount } } }
{"waiting": {"totalCount": 2}, "adjuster": {"claims": {"totalCount": 2}}}

The place of a loss, where the item has a map and where it has none
mutation { one: updateClaim(input: {policyNo: "HO-77", claimNo: 1, place: "Kiel", cause: null}) { claim { place } } two: updateClaim(input: {policyNo: "HO-77", claimNo: 2, place: "Ulm", cause: "fire"}) { claim { place } } }
{ policy(policyNo: "HO-77") { claims { nodes { place cause } } } }
{"policy": {"claims": {"nodes": [{"place": "Kiel", "cause": null}, {"place": "Ulm", "cause": "fire"}]}}}

A reserve beyond what its key has room for
mutation { updateClaim(input: {policyNo: "HO-77", claimNo: 2, reserve: 10000000}) { claim { reserve } } }
reserve of Claim has a value that its key cannot hold: its text must fit \\d{7}

A claim is closed and its reserve lowered
mutation { updateClaim(input: {policyNo: "HO-77", claimNo: 2, status: "closed", add: {reserve: -99000}}) { claim { reserve } } }
{ adjuster(adjusterId: "kim") { claims { nodes { status reserve } } } }
{"adjuster": {"claims": {"nodes": [{"status": "closed", "reserve": 1000}, {"status": "open", "reserve": 4999}]}}}

Documents with a claim and without one
mutation { one: putDocument(input: {policyNo: "AU-5", kindOf: "photo", number: 1, claimNo: "000001", uri: "s3://b/3", tags: ["car"]}) { clientMutationId } two: putDocument(input: {policyNo: "AU-5", kindOf: "photo", number: 1, uri: "s3://b/4"}) { clientMutationId } three: updateDocument(input: {policyNo: "AU-5", kindOf: "photo", number: 1, claimNo: "000001", add: {tags: ["red"]}}) { document { tags } } }
{ policy(policyNo: "AU-5") { documents { nodes { claimNo uri tags } } none: documents(kindOf: {eq: "photo"}, number: {eq: 1}, claimNo: null) { nodes { uri } } } }
{"policy": {"documents": {"nodes": [{"claimNo": null, "uri": "s3://b/4", "tags": null}, {"claimNo": "000001", "uri": "s3://b/3", "tags": ["car", "red"]}]}, "none": {"nodes": [{"uri": "s3://b/4"}]}}}

A document is given to a claim
mutation { moveDocument(input: {policyNo: "HO-77", kindOf: "terms", number: 1, to: {claimNo: "000002"}}) { document { uri claimNo } } }
{ policy(policyNo: "HO-77") { documents(kindOf: {beginsWith: "t"}) { nodes { claimNo uri } } } }
{"policy": {"documents": {"nodes": [{"claimNo": "000002", "uri": "s3://b/2"}]}}}

A policy with a claim
mutation { deletePolicy(input: {policyNo: "AU-6", onEdges: DETACH}) { detached } }
This Policy cannot be deleted. It is named by 1 Claim (policy).

A claim is deleted, and then the policy with its version
mutation { deleteClaim(input: {policyNo: "AU-6", claimNo: 1}) { clientMutationId } deletePolicy(input: {policyNo: "AU-6", onEdges: DETACH}) { detached } }
{ policy(policyNo: "AU-6") { latest } waiting(unassigned: "OPEN#south") { totalCount } }
{"policy": null, "waiting": {"totalCount": 1}}
"""
