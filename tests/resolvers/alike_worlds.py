"""Models whose ends are stored in one attribute, and whose types have one type value."""

from __future__ import annotations

from decimal import Decimal

from keygraph import ID, Graph, Index, Many, Table, edge, many, node, record, stored
from keygraph.dynamo.items import Item

by_place = Index("ByPlace", "PlacePK", "PlaceSK")

# --- Ends that share an attribute -----------------------------------------------------------------------


@node("TENANT#{tenant}")
class Tenant:
    tenant: ID
    name: str

    machines: Many[Machine] = many()


@node("TENANT#{tenant}#MODEL#{model_id}", "MODEL")
class Model:
    tenant: ID
    model_id: ID
    name: str

    offers: Many[Offer] = many()


@node("TENANT#{tenant}#SITE#{site_id}", "SITE")
class Site:
    tenant: ID
    site_id: ID
    name: str

    offers: Many[Offer] = many()
    machines: Many[Machine] = many()


@node(
    "MACHINE#{machine_id}",
    by_place("{site}", "MACHINE#{machine_id}", lists=False),
    Index("ByTenant", "TenantPK", "TenantSK")("{owner}", "MACHINE#{machine_id}"),
)
class Machine:
    """A site and a spare one of one tenant, which owns it too."""

    machine_id: ID
    owner: Tenant = stored("tenant")
    model: Model | None = stored(tenant="tenant", model_id="modelId")
    site: Site | None = stored(tenant="tenant", site_id="siteId")
    spare: Site | None = stored(tenant="tenant", site_id="spareId")
    site_code: str | None = stored("siteId")
    hours: int = 0

    checks: Many[Check] = many()


@edge("{model}", "AT#{site.site_id}", by_place("{site}", "OF#{model.model_id}", lists=False))
class Offer:
    model: Model = stored(tenant="tenant", model_id="modelId")
    site: Site = stored(tenant="tenant", site_id="siteId")
    price: int | None
    seller: Site | None = stored(tenant="tenant", site_id="sellerId")


@record("{machine}", "CHECK#{number:03d}")
class Check:
    machine: Machine
    number: int
    site: Site | None = stored(tenant="tenant", site_id="siteId")
    model: Model | None = stored(tenant="tenant", model_id="modelId")
    note: str | None


sharing = Graph(
    Table(
        "Tenants",
        partition_key="PK",
        sort_key="SK",
        indexes=[by_place, Index("ByTenant", "TenantPK", "TenantSK")],
    ),
    Tenant,
    Model,
    Site,
    Machine,
    Offer,
    Check,
    attribute_case="camel",
    type_attribute="Type",
    separator="#",
    writes=True,
)


def sharing_items() -> list[Item]:
    items: list[Item] = []
    for tenant in ("acme", "apex"):
        key = f"TENANT#{tenant}"
        items.append({"PK": key, "SK": key, "Type": "Tenant", "tenant": tenant, "name": tenant.title()})
        for name in ("m1", "m2"):
            own: Item = {"tenant": tenant, "modelId": name, "name": f"{tenant} {name}"}
            items.append({"PK": f"{key}#MODEL#{name}", "SK": "MODEL", "Type": "Model", **own})
        for name in ("s1", "s2", "s3"):
            own = {"tenant": tenant, "siteId": name, "name": f"{tenant} {name}"}
            items.append({"PK": f"{key}#SITE#{name}", "SK": "SITE", "Type": "Site", **own})
        for number, (model, site) in enumerate((("m1", "s1"), ("m1", "s2"), ("m2", "s1"))):
            offer: Item = {
                "PK": f"{key}#MODEL#{model}",
                "SK": f"AT#{site}",
                "Type": "Offer",
                "PlacePK": f"{key}#SITE#{site}",
                "PlaceSK": f"OF#{model}",
                "tenant": tenant,
                "modelId": model,
                "siteId": site,
                "price": Decimal(number),
            }
            items.append(offer if number else {**offer, "sellerId": "s3"})
            machine = f"{tenant}{number}"
            item: Item = {
                "PK": f"MACHINE#{machine}",
                "SK": f"MACHINE#{machine}",
                "Type": "Machine",
                "machineId": machine,
                "tenant": tenant,
                "modelId": model,
                "siteId": site,
                "hours": Decimal(number * 10),
                "PlacePK": f"{key}#SITE#{site}",
                "PlaceSK": f"MACHINE#{machine}",
                "TenantPK": key,
                "TenantSK": f"MACHINE#{machine}",
            }
            items.append({**item, "spareId": "s3"} if number else item)
            for day in range(number):
                check: Item = {"number": Decimal(day), "tenant": tenant, "siteId": site, "note": f"{day}"}
                check |= {"PK": f"MACHINE#{machine}", "SK": f"CHECK#{day:03d}", "Type": "Check"}
                items.append({**check, "machineId": machine, **({"modelId": model} if day else {})})
    return items


# --- Types with one type value --------------------------------------------------------------------------


@node("PERSON#{person_id}", type="Party")
class Person:
    person_id: ID
    name: str

    accounts: Many[Account] = many(at="owner")
    watched: Many[Watch] = many(at="by")


@node("FIRM#{firm_id}", type="Party")
class Firm:
    firm_id: ID
    name: str
    size: int | None

    accounts: Many[Account] = many(at="owner")


@node("ACCOUNT#{account_id}", by_place("{owner}", "ACCOUNT#{account_id}", lists=False), type="Account")
class Account:
    account_id: ID
    owner: Person | Firm

    income: Many[Income] = many()
    expenses: Many[Expense] = many()
    entries: Many[Income | Expense] = many()
    watches: Many[Watch] = many(at="account")
    stakes: Many[Stake] = many(at="account")


@record("{account}", "IN#{number:03d}", type="Entry")
class Income:
    account: Account
    number: int
    amount: int
    payer: Person | Firm | None


@record("{account}", "OUT#{number:03d}", type="Entry")
class Expense:
    account: Account
    number: int
    amount: int
    reason: str | None


@edge("{account}", "WATCH#{by}", by_place("{by}", "WATCH#{account.account_id}", lists=False), type="Link")
class Watch:
    account: Account
    by: Person
    since: int | None


@edge("{account}", "STAKE#{firm.firm_id}", type="Link")
class Stake:
    account: Account
    firm: Firm
    share: int | None


one_value = Graph(
    Table("Accounts", partition_key="PK", sort_key="SK", indexes=[by_place]),
    Person,
    Firm,
    Account,
    Income,
    Expense,
    Watch,
    Stake,
    attribute_case="camel",
    type_attribute="Type",
    writes=True,
)


def one_value_items() -> list[Item]:
    items: list[Item] = []
    for name in ("ann", "bob", "cy"):
        key = f"PERSON#{name}"
        items.append({"PK": key, "SK": key, "Type": "Party", "personId": name, "name": name.title()})
    for number, name in enumerate(("acme", "bolt")):
        key = f"FIRM#{name}"
        items.append(
            {
                "PK": key,
                "SK": key,
                "Type": "Party",
                "firmId": name,
                "name": name.title(),
                "size": Decimal(number),
            }
        )
    for number, owner in enumerate(("PERSON#ann", "PERSON#bob", "FIRM#acme", "FIRM#bolt")):
        key = f"ACCOUNT#{number}"
        index = {"PlacePK": owner, "PlaceSK": key}
        items.append(
            {
                "PK": key,
                "SK": key,
                "Type": "Account",
                "accountId": f"{number}",
                "ownerId": owner,
                **index,
            }
        )
        own: Item = {"PK": key, "Type": "Entry", "accountId": f"{number}"}
        for each in range(number + 1):
            counted = {"number": Decimal(each), "amount": Decimal(10 * each + number)}
            items.append({**own, **counted, "SK": f"IN#{each:03d}", "payerId": "PERSON#ann"})
            if each:
                items.append({**own, **counted, "SK": f"OUT#{each:03d}", "reason": f"reason {each}"})
        linked: Item = {"PK": key, "Type": "Link", "accountId": f"{number}"}
        for person in ("ann", "bob", "cy")[: number + 1]:
            index = {"PlacePK": f"PERSON#{person}", "PlaceSK": f"WATCH#{number}"}
            items.append(
                {**linked, **index, "SK": f"WATCH#PERSON#{person}", "byId": person, "since": Decimal(number)}
            )
        items.append({**linked, "SK": "STAKE#acme", "firmId": "acme", "share": Decimal(number)})
    return items
