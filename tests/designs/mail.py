"""E-mails whose ends are whole keys: folders, threads, answers and recipients, each found by an index on the attribute itself.

After published designs of mailboxes: an unread mail names its folder a second time, so that a sparse index has the unread ones.
"""

from __future__ import annotations

from datetime import datetime

from keygraph import (
    ID,
    Graph,
    Index,
    Many,
    Reach,
    Table,
    counts,
    edge,
    many,
    new_id,
    node,
    reach,
    record,
    stored,
    sums,
    updated,
)

in_folder = Index("InFolder", "In", "Received")
unread = Index("Unread", "UnreadIn", "Received", projection=["Subject"])
in_thread = Index("InThread", "Thread", "Received", projection="KEYS_ONLY")
answers = Index("Answers", "AnswerTo", "Id")
by_label = Index("ByLabel", "Sort", "Id")
by_digest = Index("ByDigest", ("Sha", "B"), "Id")


@node("box:{address:[a-z.@]+}", "-")
class Mailbox:
    address: ID
    folders: Many[Folder]
    labels: Many[Label]


@node("dir:{folder_id}", "-", in_folder("{box}", "{position:02d}"))
class Folder:
    folder_id: ID = new_id()
    box: Mailbox = stored("In", whole_key=True)
    position: int
    title: str
    mails: Many[Mail] = many(index=in_folder)
    unread: Many[Mail] = many(index=unread)
    mails_count: int = counts("mails")
    unread_count: int = counts("unread")
    size: int = sums("mails.size")


@node("thr:{thread_id}", "-")
class Thread:
    thread_id: ID
    subject: str
    touched: datetime = updated()
    mails: Many[Mail]


@node("who:{address}", "-")
class Contact:
    address: ID
    name: str | None
    received: Many[Sent]


@node("eml:{mail_id}", "-")
class Mail:
    mail_id: ID
    folder: Folder = stored("In", whole_key=True)
    unread_in: Folder | None = stored("UnreadIn", whole_key=True)
    thread: Thread = stored("Thread", whole_key=True)
    sender: Contact = stored("From", whole_key=True)
    answer_to: Mail | None = stored("AnswerTo", whole_key=True)
    received: datetime = stored("Received")
    subject: str
    size: int = 0
    flags: set[str] | None
    body: str | None = stored("Mime", "Text", default=None)
    answers: Many[Mail] = many(index=answers)
    discussion: Reach[Mail] = reach("answers", depth=9)
    recipients: Many[Sent]
    labels: Many[Labelled]
    files: Many[File]


@edge("{mail}", "{contact}")
class Sent:
    mail: Mail
    contact: Contact
    how: str = "to"


@node("lbl:{name}", "-", in_folder("{box}", "~{name}"))
class Label:
    name: ID
    box: Mailbox = stored("In", whole_key=True)
    mails: Many[Labelled]


@edge("{mail}", "{label}")
class Labelled:
    mail: Mail
    label: Label


@record("{mail}", "file:{number}", by_digest(finds="file_by_digest"))
class File:
    mail: Mail
    number: int
    sha: bytes
    name: str


graph = Graph(
    Table(
        "Mails",
        partition_key="Id",
        sort_key="Sort",
        indexes=[in_folder, unread, in_thread, answers, by_label, by_digest],
    ),
    Mailbox,
    Folder,
    Thread,
    Contact,
    Mail,
    Sent,
    Label,
    Labelled,
    File,
    attribute_case="pascal",
    store_key_fields=False,
    writes=True,
)

ITEMS = """
{"Id": "box:ada@x.org", "Sort": "-"}
{"Id": "dir:in", "Sort": "-", "In": "box:ada@x.org", "Received": "01", "Title": "Inbox", "MailsCount": 2, "UnreadCount": 1, "Size": 300}
{"Id": "dir:old", "Sort": "-", "In": "box:ada@x.org", "Received": "02", "Title": "Archive", "MailsCount": 1, "UnreadCount": 0, "Size": 50}
{"Id": "lbl:work", "Sort": "-", "In": "box:ada@x.org", "Received": "~work"}
{"Id": "thr:1", "Sort": "-", "Subject": "Keys", "Touched": "2024-05-02T00:00:00Z"}
{"Id": "who:ben@x.org", "Sort": "-", "Name": "Ben"}
{"Id": "who:cy@x.org", "Sort": "-"}
{"Id": "eml:1", "Sort": "-", "In": "dir:in", "Thread": "thr:1", "From": "who:ben@x.org", "Received": "2024-05-01T08:00:00.000Z", "Subject": "Keys", "Size": 100, "Flags": ["starred"], "Mime": {"Text": "Hello"}}
{"Id": "eml:2", "Sort": "-", "In": "dir:in", "UnreadIn": "dir:in", "Thread": "thr:1", "From": "who:cy@x.org", "AnswerTo": "eml:1", "Received": "2024-05-01T08:00:00.500Z", "Subject": "Re: Keys", "Size": 200}
{"Id": "eml:3", "Sort": "-", "In": "dir:old", "Thread": "thr:1", "From": "who:ben@x.org", "AnswerTo": "eml:2", "Received": "2024-05-03T08:00:00Z", "Subject": "Re: Re: Keys", "Size": 50}
{"Id": "eml:1", "Sort": "who:cy@x.org"}
{"Id": "eml:2", "Sort": "who:ben@x.org", "How": "cc"}
{"Id": "eml:1", "Sort": "lbl:work"}
{"Id": "eml:1", "Sort": "file:1", "Sha": "3q2+7w==", "Name": "a.pdf"}
"""

ASKED = """
The folders of a mailbox in their order, with what is new, and its labels
{ mailbox(address: "ada@x.org") { folders { nodes { title position mailsCount unreadCount size } } labels { nodes { name } } } }
{"mailbox": {"folders": {"nodes": [{"title": "Inbox", "position": 1, "mailsCount": 2, "unreadCount": 1, "size": 300}, {"title": "Archive", "position": 2, "mailsCount": 1, "unreadCount": 0, "size": 50}]}, "labels": {"nodes": [{"name": "work"}]}}}

The newest mails of a folder
{ folder(folderId: "in") { mails(first: 1, direction: DESC) { totalCount nodes { received subject sender { address name } } } } }
{"folder": {"mails": {"totalCount": 2, "nodes": [{"received": "2024-05-01T08:00:00.500Z", "subject": "Re: Keys", "sender": {"address": "cy@x.org", "name": null}}]}}}

What came within a second, and before it was over
{ folder(folderId: "in") { mails(received: {from: "2024-05-01T08:00:00Z", to: "2024-05-01T08:00:00.4Z"}) { nodes { mailId } } later: mails(received: {from: "2024-05-01T08:00:00.1Z"}) { nodes { mailId } } } }
{"folder": {"mails": {"nodes": [{"mailId": "1"}]}, "later": {"nodes": [{"mailId": "2"}]}}}

The unread mails of a folder
{ folder(folderId: "in") { unread { totalCount nodes { subject thread { subject } } } } old: folder(folderId: "old") { unread { nodes { subject } } } }
{"folder": {"unread": {"totalCount": 1, "nodes": [{"subject": "Re: Keys", "thread": {"subject": "Keys"}}]}}, "old": {"unread": {"nodes": []}}}

A mail with its recipients, labels and files
{ mail(mailId: "1") { body flags recipients { edges { how node { address } } } labels { nodes { name } } files { nodes { number name } } } }
{"mail": {"body": "Hello", "flags": ["starred"], "recipients": {"edges": [{"how": "to", "node": {"address": "cy@x.org"}}]}, "labels": {"nodes": [{"name": "work"}]}, "files": {"nodes": [{"number": 1, "name": "a.pdf"}]}}}

A thread in the order of time
{ thread(threadId: "1") { touched mails { nodes { mailId folder { title } answerTo { mailId } } } } }
{"thread": {"touched": "2024-05-02T00:00:00Z", "mails": {"nodes": [{"mailId": "1", "folder": {"title": "Inbox"}, "answerTo": null}, {"mailId": "2", "folder": {"title": "Inbox"}, "answerTo": {"mailId": "1"}}, {"mailId": "3", "folder": {"title": "Archive"}, "answerTo": {"mailId": "2"}}]}}}

All that answers a mail, at any depth
{ mail(mailId: "1") { answers { nodes { mailId } } discussion { edges { distance node { mailId subject } } } } }
{"mail": {"answers": {"nodes": [{"mailId": "2"}]}, "discussion": {"edges": [{"distance": 1, "node": {"mailId": "2", "subject": "Re: Keys"}}, {"distance": 2, "node": {"mailId": "3", "subject": "Re: Re: Keys"}}]}}}

What somebody got, and what is labelled
{ contact(address: "ben@x.org") { received { edges { how node { mailId subject } } } } label(name: "work") { mails { nodes { subject files { totalCount } } } } }
{"contact": {"received": {"edges": [{"how": "cc", "node": {"mailId": "2", "subject": "Re: Keys"}}]}}, "label": {"mails": {"nodes": [{"subject": "Keys", "files": {"totalCount": 1}}]}}}

A file by its digest
{ fileByDigest(sha: "3q2+7w==") { name mail { subject } } in: fileByDigest(sha: "3q2+7w==", mailId: "2") { name } }
{"fileByDigest": {"name": "a.pdf", "mail": {"subject": "Keys"}}, "in": null}

Mails of a folder by a sender
{ folder(folderId: "in") { mails(where: {senderAddress: {eq: "ben@x.org"}}) { nodes { subject } } } }
{"folder": {"mails": {"nodes": [{"subject": "Keys"}]}}}

Mails with a word in their text
{ search(word: "hello") { nodes { subject } } }
No key has the words of a text: a search engine that follows the stream finds them.
"""

WRITES = """
A mail comes, with its recipients and a file, as an answer
mutation { createMail(input: {mailId: "4", folderId: "in", unreadInId: "in", threadId: "1", senderAddress: "ben@x.org", answerToId: "3", received: "2024-05-04T08:00:00Z", subject: "Re", size: 25, recipients: [{contactAddress: "cy@x.org"}, {contactAddress: "ben@x.org", how: "bcc"}], files: [{number: 1, sha: "AAEC", name: "b.pdf"}]}) { mail { thread { subject } } } }
{ folder(folderId: "in") { mailsCount unreadCount size } mail(mailId: "1") { discussion { totalCount } } fileByDigest(sha: "AAEC") { mail { mailId recipients { edges { how node { address } } } } } }
{"folder": {"mailsCount": 3, "unreadCount": 2, "size": 325}, "mail": {"discussion": {"totalCount": 3}}, "fileByDigest": {"mail": {"mailId": "4", "recipients": {"edges": [{"how": "bcc", "node": {"address": "ben@x.org"}}, {"how": "to", "node": {"address": "cy@x.org"}}]}}}}

To somebody who is not known
mutation { createMail(input: {mailId: "5", folderId: "in", threadId: "1", senderAddress: "ben@x.org", received: "2024-05-04T08:00:00Z", subject: "Re", recipients: [{contactAddress: "di@x.org"}]}) { mail { mailId } } }
contactAddress: there is no Contact with this key.

It is read, and starred
mutation { updateMail(input: {mailId: "4", unreadInId: null, add: {flags: ["starred"]}}) { mail { flags unreadIn { title } } } }
{ folder(folderId: "in") { unreadCount mailsCount unread { nodes { subject } } } }
{"folder": {"unreadCount": 1, "mailsCount": 3, "unread": {"nodes": [{"subject": "Re: Keys"}]}}}

It goes to the archive, and an unread one with it
mutation { updateMails(input: {inputs: [{mailId: "4", folderId: "old"}, {mailId: "2", folderId: "old", unreadInId: "old"}]}) { results { mail { folder { title } } } } }
{ mailbox(address: "ada@x.org") { folders { nodes { title mailsCount unreadCount size } } } folder(folderId: "old") { mails { nodes { mailId } } unread { nodes { subject } } } }
{"mailbox": {"folders": {"nodes": [{"title": "Inbox", "mailsCount": 1, "unreadCount": 0, "size": 100}, {"title": "Archive", "mailsCount": 3, "unreadCount": 1, "size": 275}]}}, "folder": {"mails": {"nodes": [{"mailId": "2"}, {"mailId": "3"}, {"mailId": "4"}]}, "unread": {"nodes": [{"subject": "Re: Keys"}]}}}

A folder between two, and one that changes places
mutation { one: createFolder(input: {boxAddress: "ada@x.org", position: 3, title: "Sent"}) { folder { mailsCount } } two: updateFolder(input: {folderId: "old", position: 9}) { folder { position } } }
{ mailbox(address: "ada@x.org") { folders { nodes { title position mailsCount } } labels { totalCount } } }
{"mailbox": {"folders": {"nodes": [{"title": "Inbox", "position": 1, "mailsCount": 1}, {"title": "Sent", "position": 3, "mailsCount": 0}, {"title": "Archive", "position": 9, "mailsCount": 3}]}, "labels": {"totalCount": 1}}}

A label for two mails, once more for one
mutation { createLabelleds(input: {inputs: [{mailId: "2", labelName: "work"}, {mailId: "1", labelName: "work"}], atomic: false}) { results { labelled { mail { mailId } } } } }
There is already a Labelled with this key.

It is there nevertheless
mutation { upsertLabelled(input: {mailId: "1", labelName: "work"}) { created } }
{ label(name: "work") { mails { nodes { mailId } } } }
{"label": {"mails": {"nodes": [{"mailId": "1"}, {"mailId": "2"}]}}}

A text without a map, and none
mutation { one: updateMail(input: {mailId: "3", body: "Yes"}) { mail { body } } two: updateMail(input: {mailId: "1", body: null}) { mail { body } } }
{ three: mail(mailId: "3") { body subject } one: mail(mailId: "1") { body } }
{"three": {"body": "Yes", "subject": "Re: Re: Keys"}, "one": {"body": null}}

A mail that is answered is deleted for good: the answers stay
mutation { deleteMail(input: {mailId: "2", onEdges: DETACH}) { detached } }
{ folder(folderId: "old") { mailsCount unreadCount size } mail(mailId: "3") { answerTo { mailId } } label(name: "work") { mails { nodes { mailId } } } contact(address: "ben@x.org") { received { nodes { mailId } } } thread(threadId: "1") { mails { nodes { mailId } } } }
{"folder": {"mailsCount": 2, "unreadCount": 0, "size": 75}, "mail": {"answerTo": null}, "label": {"mails": {"nodes": [{"mailId": "1"}]}}, "contact": {"received": {"nodes": [{"mailId": "4"}]}}, "thread": {"mails": {"nodes": [{"mailId": "1"}, {"mailId": "3"}, {"mailId": "4"}]}}}

A folder that is not empty
mutation { deleteFolder(input: {folderId: "old"}) { deletedId } }
This Folder cannot be deleted. It is named by 2 Mails (folder).

A thread in one with another: the mails move, and it goes
mutation { write(input: {actions: [{createThread: {threadId: "2", subject: "Keys again"}}, {updateMail: {mailId: "1", threadId: "2"}}, {updateMail: {mailId: "3", threadId: "2"}}, {updateMail: {mailId: "4", threadId: "2"}}]}) { clientMutationId } deleteThread(input: {threadId: "1"}) { clientMutationId } }
{ thread(threadId: "1") { subject } new: thread(threadId: "2") { mails { totalCount nodes { thread { subject } } } } }
{"thread": null, "new": {"mails": {"totalCount": 3, "nodes": [{"thread": {"subject": "Keys again"}}, {"thread": {"subject": "Keys again"}}, {"thread": {"subject": "Keys again"}}]}}}
"""
