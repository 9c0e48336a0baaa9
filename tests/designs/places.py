"""Places to rent by country, state and city in one sort key. After the hierarchies of locations in the developer guide of DynamoDB."""

from __future__ import annotations

from datetime import datetime

from keygraph import ID, Graph, Index, Many, Table, node, record

by_place = Index("ByPlace", "Country", "Place")


@node(
    "listing~{listing_id}", "about", by_place("{country}", "{state}#{city}#{listing_id}", lists="listings_in")
)
class Listing:
    listing_id: ID
    country: str
    state: str
    city: str
    rent: int
    photos: Many[Photo]
    viewings: Many[Viewing]


@record("{listing}", "photo~{number}")
class Photo:
    listing: Listing
    number: int
    url: str


@record("{listing}", "viewing~{at}")
class Viewing:
    listing: Listing
    at: datetime
    visitor: str


graph = Graph(
    Table("Listings", partition_key="Id", sort_key="Part", indexes=[by_place]),
    Listing,
    Photo,
    Viewing,
    attribute_case="pascal",
)

ITEMS = """
{"Id": "listing~l1", "Part": "about", "Country": "US", "Place": "WA#Seattle#l1", "State": "WA", "City": "Seattle", "Rent": 2000}
{"Id": "listing~l2", "Part": "about", "Country": "US", "Place": "WA#Tacoma#l2", "State": "WA", "City": "Tacoma", "Rent": 1500}
{"Id": "listing~l3", "Part": "about", "Country": "FR", "Place": "IDF#Paris#l3", "State": "IDF", "City": "Paris", "Rent": 1800}
{"Id": "listing~l1", "Part": "photo~1", "Url": "s3://b/1"}
{"Id": "listing~l1", "Part": "photo~2", "Url": "s3://b/2"}
{"Id": "listing~l2", "Part": "photo~1", "Url": "s3://b/3"}
{"Id": "listing~l1", "Part": "viewing~2024-05-01T10:00:00Z", "Visitor": "Ada"}
"""

ASKED = """
What there is in a state
{ listingsIn(country: "US", state: {eq: "WA"}) { nodes { city photos { totalCount } viewings { nodes { visitor } } } } }
{"listingsIn": {"nodes": [{"city": "Seattle", "photos": {"totalCount": 2}, "viewings": {"nodes": [{"visitor": "Ada"}]}}, {"city": "Tacoma", "photos": {"totalCount": 1}, "viewings": {"nodes": []}}]}}
"""
