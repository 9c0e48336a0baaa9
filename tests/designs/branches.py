"""Repositories with branches, commits and pull requests: open ones newest first, closed ones in order, under one index key.

After the metadata of GitHub in "The DynamoDB Book" (Alex DeBrie), with branches and commits added.
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
    One,
    Table,
    counts,
    field,
    many,
    node,
    one,
    record,
    version,
)

gsi1 = Index("GSI1", "GSI1PK", "GSI1SK")
gsi2 = Index("GSI2", "GSI2PK", "GSI2SK")


@node("ACCOUNT#{login}")
class Account:
    login: ID
    pull_requests: Many[PullRequest]


@node("REPO#{owner}#{name}")
class Repo:
    owner: ID
    name: ID
    about: str | None
    branches: Many[Branch]
    branches_count: int = counts("branches")
    commits: Many[Commit] = many(index=None)
    log: Many[Commit] = many(index=gsi1)
    pulls: Many[PullRequest]


@node("REPO#{repo.owner}#{repo.name}", "BRANCH#{branch}")
class Branch:
    repo: Repo
    branch: ID
    head: str
    revision: int = version()


@record(
    "REPO#{repo.owner}#{repo.name}",
    "COMMIT#{sha:[0-9a-f]{7}}",
    gsi1("REPO#{repo.owner}#{repo.name}#LOG#{branch}", "{at:newest}#{sha:[0-9a-f]{7}}"),
)
class Commit:
    repo: Repo
    sha: ID
    branch: str
    at: datetime
    message: str
    parents: list[str]


@node(
    "PR#{repo.owner}#{repo.name}#{number:06d}",
    gsi1("REPO#{repo.owner}#{repo.name}", "PR#{position}"),
    gsi2("{author}", "PR#{repo.owner}#{repo.name}#{number:06d}"),
)
class PullRequest:
    repo: Repo
    number: int
    title: str
    author: Account
    open: bool = True
    reviews: Many[Review]
    merge: One[Merge] = one()

    @field(needs=("open", "number"))
    def position(self) -> str:
        return f"OPEN#{999999 - self.number:06d}" if self.open else f"CLOSED#{self.number:06d}"


@record("PR#{pull.repo.owner}#{pull.repo.name}#{pull.number:06d}", "REVIEW#{reviewer}#{round:02d}")
class Review:
    pull: PullRequest
    reviewer: ID
    round: int
    verdict: str


@record("PR#{pull.repo.owner}#{pull.repo.name}#{pull.number:06d}", "MERGE")
class Merge:
    pull: PullRequest
    sha: str


graph = Graph(
    Table("Forge", partition_key="PK", sort_key="SK", indexes=[gsi1, gsi2]),
    Account,
    Repo,
    Branch,
    Commit,
    PullRequest,
    Review,
    Merge,
    separator="#",
    attribute_case="camel",
    formats={"newest": Format.reversed(9_999_999_999, of=Epoch())},
    writes=True,
)

ITEMS = """
{"PK": "ACCOUNT#ada", "SK": "ACCOUNT#ada"}
{"PK": "REPO#acme#anvil", "SK": "REPO#acme#anvil", "about": "Heavy.", "branchesCount": 2}
{"PK": "REPO#acme#anvil", "SK": "BRANCH#main", "head": "bbbbbbb", "revision": 2}
{"PK": "REPO#acme#anvil", "SK": "BRANCH#feature/x", "head": "ccccccc", "revision": 1}
{"PK": "REPO#acme#anvil", "SK": "COMMIT#aaaaaaa", "GSI1PK": "REPO#acme#anvil#LOG#main", "GSI1SK": "8285478399#aaaaaaa", "branch": "main", "at": "2024-05-01T00:00:00Z", "message": "First", "parents": []}
{"PK": "REPO#acme#anvil", "SK": "COMMIT#bbbbbbb", "GSI1PK": "REPO#acme#anvil#LOG#main", "GSI1SK": "8285391999#bbbbbbb", "branch": "main", "at": "2024-05-02T00:00:00Z", "message": "Second", "parents": ["aaaaaaa"]}
{"PK": "PR#acme#anvil#000007", "SK": "PR#acme#anvil#000007", "GSI1PK": "REPO#acme#anvil", "GSI1SK": "PR#CLOSED#000007", "GSI2PK": "ACCOUNT#ada", "GSI2SK": "PR#acme#anvil#000007", "repoOwner": "acme", "repoName": "anvil", "number": 7, "title": "Old", "authorLogin": "ada", "open": false}
{"PK": "PR#acme#anvil#000007", "SK": "REVIEW#ben#01", "verdict": "changes"}
{"PK": "PR#acme#anvil#000007", "SK": "REVIEW#ben#02", "verdict": "approved"}
{"PK": "PR#acme#anvil#000007", "SK": "MERGE", "sha": "bbbbbbb"}
{"PK": "PR#acme#anvil#000008", "SK": "PR#acme#anvil#000008", "GSI1PK": "REPO#acme#anvil", "GSI1SK": "PR#OPEN#999991", "GSI2PK": "ACCOUNT#ada", "GSI2SK": "PR#acme#anvil#000008", "repoOwner": "acme", "repoName": "anvil", "number": 8, "title": "Bell", "authorLogin": "ada", "open": true}
{"PK": "PR#acme#anvil#000012", "SK": "PR#acme#anvil#000012", "GSI1PK": "REPO#acme#anvil", "GSI1SK": "PR#OPEN#999987", "GSI2PK": "ACCOUNT#ada", "GSI2SK": "PR#acme#anvil#000012", "repoOwner": "acme", "repoName": "anvil", "number": 12, "title": "Lock", "authorLogin": "ada", "open": true}
"""

ASKED = """
A repository with its branches
{ repo(owner: "acme", name: "anvil") { about branchesCount branches { totalCount nodes { branch head } } } }
{"repo": {"about": "Heavy.", "branchesCount": 2, "branches": {"totalCount": 2, "nodes": [{"branch": "feature/x", "head": "ccccccc"}, {"branch": "main", "head": "bbbbbbb"}]}}}

One branch by its name
{ branch(repoOwner: "acme", repoName: "anvil", branch: "feature/x") { head revision repo { about } } }
{"branch": {"head": "ccccccc", "revision": 1, "repo": {"about": "Heavy."}}}

The log of a branch, newest first, since a day
{ repo(owner: "acme", name: "anvil") { log(branch: "main") { nodes { sha message } } since: log(branch: "main", at: {from: "2024-05-01T12:00:00Z"}) { nodes { sha } } } }
{"repo": {"log": {"nodes": [{"sha": "bbbbbbb", "message": "Second"}, {"sha": "aaaaaaa", "message": "First"}]}, "since": {"nodes": [{"sha": "bbbbbbb"}]}}}

A commit by the beginning of its hash
{ repo(owner: "acme", name: "anvil") { commits(sha: {beginsWith: "aa"}) { nodes { sha at parents } } } }
{"repo": {"commits": {"nodes": [{"sha": "aaaaaaa", "at": "2024-05-01T00:00:00Z", "parents": []}]}}}

Open pull requests, newest first
{ repo(owner: "acme", name: "anvil") { pulls(position: {beginsWith: "OPEN#"}, first: 2) { nodes { number title } } } }
{"repo": {"pulls": {"nodes": [{"number": 12, "title": "Lock"}, {"number": 8, "title": "Bell"}]}}}

Closed pull requests from a number on
{ repo(owner: "acme", name: "anvil") { pulls(position: {from: "CLOSED#000005", to: "CLOSED#999999"}) { nodes { number } } } }
{"repo": {"pulls": {"nodes": [{"number": 7}]}}}

One pull request with reviews of one person and the merge
{ pullRequest(repoOwner: "acme", repoName: "anvil", number: 7) { author { login } repo { about } reviews(reviewer: {eq: "ben"}, round: {from: 2}) { nodes { verdict } } merge { sha } } }
{"pullRequest": {"author": {"login": "ada"}, "repo": {"about": "Heavy."}, "reviews": {"nodes": [{"verdict": "approved"}]}, "merge": {"sha": "bbbbbbb"}}}

The pull requests of an account in a repository
{ account(login: "ada") { pullRequests(repoOwner: {eq: "acme"}, repoName: {eq: "anvil"}, number: {to: 8}) { nodes { number open } } } }
{"account": {"pullRequests": {"nodes": [{"number": 7, "open": false}, {"number": 8, "open": true}]}}}

Pull requests that wait for a reviewer
{ reviews(reviewer: "ben") { nodes { verdict } } }
No key begins with the reviewer: reviews lie in the partition of their pull request.
"""

WRITES = """
A pull request is opened
mutation { createPullRequest(input: {repo: {owner: "acme", name: "anvil"}, number: 13, title: "Horn", authorLogin: "ada"}) { pullRequest { open position } } }
{ repo(owner: "acme", name: "anvil") { pulls(position: {beginsWith: "OPEN#"}) { nodes { number } } } }
{"repo": {"pulls": {"nodes": [{"number": 13}, {"number": 12}, {"number": 8}]}}}

In a repository that is not there
mutation { createPullRequest(input: {repo: {owner: "acme", name: "drum"}, number: 1, title: "x", authorLogin: "ada"}) { pullRequest { number } } }
repo: there is no Repo with this key.

It is merged: closed with its record, in one transaction
mutation { write(input: {actions: [{updatePullRequest: {repo: {owner: "acme", name: "anvil"}, number: 12, open: false}}, {putMerge: {pull: {repoOwner: "acme", repoName: "anvil", number: 12}, sha: "ccccccc"}}]}) { clientMutationId } }
{ repo(owner: "acme", name: "anvil") { pulls { nodes { number position merge { sha } } } } }
{"repo": {"pulls": {"nodes": [{"number": 7, "position": "CLOSED#000007", "merge": {"sha": "bbbbbbb"}}, {"number": 12, "position": "CLOSED#000012", "merge": {"sha": "ccccccc"}}, {"number": 13, "position": "OPEN#999986", "merge": null}, {"number": 8, "position": "OPEN#999991", "merge": null}]}}}

And opened again under another title
mutation { updatePullRequest(input: {repo: {owner: "acme", name: "anvil"}, number: 7, open: true, title: "Again"}) { pullRequest { position } } }
{ repo(owner: "acme", name: "anvil") { pulls(position: {beginsWith: "OPEN#"}, last: 1) { nodes { number title } } } }
{"repo": {"pulls": {"nodes": [{"number": 7, "title": "Again"}]}}}

A push moves the head from the revision that was read
mutation { write(input: {actions: [{createCommit: {repo: {owner: "acme", name: "anvil"}, sha: "ddddddd", branch: "main", at: "2024-05-03T00:00:00Z", message: "Third", parents: ["bbbbbbb"]}}, {updateBranch: {repo: {owner: "acme", name: "anvil"}, branch: "main", head: "ddddddd", expectedVersion: 2}}]}) { clientMutationId } }
{ repo(owner: "acme", name: "anvil") { log(branch: "main", first: 1) { nodes { sha } } branches(branch: {eq: "main"}) { nodes { head revision } } } }
{"repo": {"log": {"nodes": [{"sha": "ddddddd"}]}, "branches": {"nodes": [{"head": "ddddddd", "revision": 3}]}}}

A push on an old head
mutation { updateBranch(input: {repo: {owner: "acme", name: "anvil"}, branch: "main", head: "eeeeeee", expectedVersion: 2}) { branch { head } } }
This Branch has changed: its version is 3.

A hash of another form
mutation { createCommit(input: {repo: {owner: "acme", name: "anvil"}, sha: "HEAD", branch: "main", at: "2024-05-03T00:00:00Z", message: "x", parents: []}) { commit { sha } } }
sha of Commit has a value that its key cannot hold: its text must fit [0-9a-f]{7}

A branch is created, renamed and counted
mutation { createBranch(input: {repo: {owner: "acme", name: "anvil"}, branch: "fix", head: "aaaaaaa"}) { branch { revision } } moveBranch(input: {repo: {owner: "acme", name: "anvil"}, branch: "feature/x", to: {branch: "feature/y"}}) { branch { head } } }
{ repo(owner: "acme", name: "anvil") { branchesCount branches { nodes { branch } } } }
{"repo": {"branchesCount": 3, "branches": {"nodes": [{"branch": "feature/y"}, {"branch": "fix"}, {"branch": "main"}]}}}

A name that the keys cannot hold
mutation { createBranch(input: {repo: {owner: "acme", name: "anvil"}, branch: "fix#1", head: "aaaaaaa"}) { branch { branch } } }
branch of Branch has a value that its key cannot hold: its text must fit [^\\#]+

A branch is deleted
mutation { deleteBranch(input: {repo: {owner: "acme", name: "anvil"}, branch: "fix"}) { clientMutationId } }
{ repo(owner: "acme", name: "anvil") { branchesCount branches(branch: {beginsWith: "f"}) { nodes { branch } } } }
{"repo": {"branchesCount": 2, "branches": {"nodes": [{"branch": "feature/y"}]}}}

A repository with pull requests
mutation { deleteRepo(input: {owner: "acme", name: "anvil"}) { clientMutationId } }
This Repo cannot be deleted. It is named by 2 Branches (repo), 3 Commits (repo), 4 PullRequests (repo).
"""
