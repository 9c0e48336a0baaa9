"""Tables that nobody has declared, as their items: what is hard to tell from a sample."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from keygraph.dynamo.items import Item
from keygraph.dynamo.table import Index, Table

_NAMES = (
    "ALICE",
    "BOB",
    "CAROL",
    "DAVE",
    "ERIN",
    "FRANK",
    "GRACE",
    "HEIDI",
    "IVAN",
    "JUDY",
    "MO",
    "NIAJ",
    "OLA",
)
_EMAILS = ("ann@corp.com", "bo@corp.com", "cy@corp.com")
_SYMBOLS = (
    "AAPL",
    "MSFT",
    "GOOG",
    "TSLA",
    "NVDA",
    "AMZN",
    "META",
    "NFLX",
    "ORCL",
    "IBM",
    "INTC",
    "AMD",
    "SAP",
)
_CITIES = (
    ("USA", "TX", "AUSTIN"),
    ("USA", "TX", "DALLAS"),
    ("USA", "CA", "FRESNO"),
    ("FRA", "IDF", "PARIS"),
    ("FRA", "PAC", "NICE"),
    ("DEU", "BY", "MUNICH"),
    ("DEU", "BE", "BERLIN"),
    ("ITA", "LAZ", "ROMA"),
)


def _table(name: str, *indexes: Index, pk: str = "PK", sk: str = "SK") -> Table:
    return Table(name, partition_key=pk, sort_key=sk, indexes=indexes)


def _under(partition: str, sort: str, **more: str | int) -> Item:
    values = {name: Decimal(value) if isinstance(value, int) else value for name, value in more.items()}
    return {"PK": partition, "SK": sort, **values}


def _cognito(number: int) -> str:
    return f"us-east-1:{UUID(int=number * 7919 + 12345678901234567890)}"


TABLES: dict[str, tuple[Table, list[Item]]] = {
    # `type` says of what kind a transaction is.
    "bank": (
        _table("Bank"),
        [_under(f"ACCT#{100 + a}", "INFO", owner=f"o{a}", balance=a) for a in range(4)]
        + [
            _under(
                f"ACCT#{100 + a}",
                f"TXN#2024-0{t + 1}-03T10:00:00Z",
                amount=t,
                type="credit" if (a + t) % 2 else "debit",
            )
            for a in range(4)
            for t in range(4)
        ],
    ),
    # Words in capitals that are all values.
    "stores": (
        _table("StoreLocations", pk="Country", sk="StateCity"),
        [
            {"Country": country, "StateCity": f"{state}#{city}#{n:05d}", "store": f"S{n}"}
            for n, (country, state, city) in enumerate(_CITIES)
        ],
    ),
    "stocks": (
        _table("Quotes", pk="symbol", sk="day"),
        [
            {"symbol": symbol, "day": f"2024/0{1 + n % 9}/1{m}", "close": Decimal("10.5")}
            for n, symbol in enumerate(_SYMBOLS)
            for m in range(2)
        ],
    ),
    # Also without prefixes: a profile in each partition, and whom somebody follows, one of them themselves.
    "followers": (
        _table("Followers"),
        [_under(name, "PROFILE", mail=f"{name.lower()}@x.org") for name in _NAMES]
        + [_under(name, _NAMES[(n * 5 + 1) % 13], since="2024-01-01") for n, name in enumerate(_NAMES)],
    ),
    # A region in front of an id, with the separator of other keys.
    "files": (
        _table("Files"),
        [_under(_cognito(n), "user", email=f"u{n}@example.com") for n in range(5)]
        + [_under(_cognito(n), f"file:{_cognito(n + m)[10:]}", size=m) for n in range(5) for m in range(3)],
    ),
    "roles": (
        _table("Roles"),
        [_under(f"user:{name}", f"user:{name}", login=name) for name in ("ann", "bo")]
        + [
            _under(f"user:{name}", f"perm:{perm}")
            for name in ("ann", "bo")
            for perm in ("iam:List", "s3:Get")
        ],
    ),
    # Emails find something, and are nothing themselves.
    "invites": (
        _table("Invites", Index("GSI1", "GSI1PK", "GSI1SK")),
        [_under(f"TEAM#{n}", f"TEAM#{n}", name="x") for n in range(3)]
        + [
            _under(f"TEAM#{n}", f"EMAIL#{email}", sent=n, GSI1PK=f"EMAIL#{email}", GSI1SK=f"EMAIL#{email}")
            for n in range(3)
            for email in _EMAILS
        ],
    ),
    "visits": (
        _table("Visits", Index("by-day", "owner", "day")),
        [_under(f"OWNER#{n}", f"OWNER#{n}", name="x") for n in range(3)]
        + [
            _under(
                f"OWNER#{n % 3}", f"VISIT#2021/07/{n + 1:02d}", owner=f"{n % 3}", day=f"2021/07/{n + 1:02d}"
            )
            for n in range(12)
        ],
    ),
    "both dates": (
        _table("Both"),
        [
            _under(f"ROOM#{n}", f"STAY#2024/02/0{n + 1}", born=f"1990-01-0{n + 1}", due=f"2024/05/0{n + 1}")
            for n in range(4)
        ],
    ),
    # Words at the end of keys, which tell types.
    "members": (
        _table("Members"),
        [_under(f"ORG#{org}", f"ORG#{org}#DETAILS", plan="p") for org in ("acme", "initech")]
        + [
            _under(f"ORG#{org}", f"USER#u{n}#{word}", **{attribute: "x"})
            for org in ("acme", "initech")
            for n in range(3)
            for word, attribute in (("PROFILE", "email"), ("SETTINGS", "theme"))
        ],
    ),
    # Words at the end of keys, which are values.
    "addresses": (
        _table("Addresses"),
        [_under(f"USER#{n}", f"USER#{n}", name="x") for n in range(4)]
        + [
            _under(f"USER#{n}", f"PLACE#{n + 7}#{word}", since="x")
            for n in range(4)
            for word in ("HOME", "WORK")
        ],
    ),
    "versions": (
        _table("Versions"),
        [_under(f"DOC#{n}", "v0", latest=3) for n in range(4)]
        + [_under(f"DOC#{n}", f"v{m:04d}", number=m, text="x") for n in range(4) for m in range(1, 4)],
    ),
    "settings": (
        _table("Settings", pk="scope", sk="name"),
        [
            {"scope": scope, "name": name, "value": "x"}
            for scope in ("global", "billing", "search")
            for name in ("timeout", "retries")
        ],
    ),
}
