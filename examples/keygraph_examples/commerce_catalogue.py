"""What the sample shop is made of: its categories with what is sold there, and the names of people and makers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """A shelf of the shop, or a wider one that holds shelves."""

    id: str
    name: str
    description: str
    parents: tuple[str, ...] = ()
    """The wider categories; a product's path goes up through the first."""
    goods: tuple[str, ...] = ()
    """What is sold here; empty where only narrower categories have products."""
    cents: tuple[int, int] = (0, 0)
    """The lowest and the highest price."""
    tags: tuple[str, ...] = ()


CATEGORIES = {
    category.id: category
    for category in (
        Category("electronics", "Electronics", "Electronic devices and accessories"),
        Category("headphones", "Headphones", "Everything worn over the ears", ("electronics",)),
        Category(
            "wireless-headphones",
            "Wireless headphones",
            "Headphones and earbuds without a cord",
            ("headphones",),
            ("Wireless Headphones", "Earbuds", "Sports Earbuds", "Wireless Headset"),
            (3_900, 34_900),
            ("wireless", "bluetooth", "noise-cancelling", "travel"),
        ),
        Category(
            "studio-headphones",
            "Studio headphones",
            "Wired headphones for listening closely",
            ("headphones",),
            ("Studio Headphones", "Monitoring Headphones", "Open-Back Headphones"),
            (5_900, 59_900),
            ("studio", "wired", "hi-fi"),
        ),
        Category(
            "speakers",
            "Speakers",
            "From the shelf to the garden party",
            ("electronics", "gifts"),
            ("Bluetooth Speaker", "Bookshelf Speakers", "Soundbar", "Kitchen Radio"),
            (2_900, 44_900),
            ("wireless", "bluetooth", "portable", "hi-fi"),
        ),
        Category("accessories", "Accessories", "What other devices cannot do without", ("electronics",)),
        Category(
            "cables",
            "Cables",
            "Cables and adapters",
            ("accessories",),
            ("USB-C Cable", "Audio Cable", "HDMI Cable", "Travel Adapter"),
            (500, 3_900),
            ("usb-c", "travel", "wired"),
        ),
        Category(
            "chargers",
            "Chargers",
            "Chargers and power banks",
            ("accessories",),
            ("Wall Charger", "Power Bank", "Charging Stand"),
            (1_500, 8_900),
            ("usb-c", "travel", "portable"),
        ),
        Category("home", "Home", "For every room"),
        Category(
            "kitchen",
            "Kitchen",
            "Pots, pans and what stands beside them",
            ("home",),
            ("Cast-Iron Pan", "Chef's Knife", "Kettle", "Coffee Grinder", "Mixing Bowl"),
            (1_200, 18_900),
            ("cooking", "stainless", "dishwasher-safe"),
        ),
        Category(
            "lighting",
            "Lighting",
            "Lamps for tables, floors and ceilings",
            ("home",),
            ("Desk Lamp", "Floor Lamp", "Pendant Lamp", "Night Light"),
            (1_900, 24_900),
            ("led", "dimmable", "oak"),
        ),
        Category("outdoors", "Outdoors", "For those who would rather be outside"),
        Category(
            "camping",
            "Camping",
            "Tents and what goes into them",
            ("outdoors",),
            ("Two-Person Tent", "Sleeping Bag", "Camp Stove", "Head Torch"),
            (1_900, 39_900),
            ("travel", "waterproof", "lightweight"),
        ),
        Category(
            "cycling",
            "Cycling",
            "Parts and clothes for bicycles and their riders",
            ("outdoors",),
            ("Bicycle Light", "Pannier Bag", "Rain Cape", "Track Pump"),
            (1_500, 14_900),
            ("waterproof", "led", "commuting"),
        ),
        Category("gifts", "Gift ideas", "For birthdays that come as a surprise"),
    )
}

SHELVES = tuple(category for category in CATEGORIES.values() if category.goods)

FIRST_NAMES = (
    *("Ada", "Aisha", "Amelie", "Anton", "Beatriz", "Carlos", "Chiara"),
    *("Daniel", "Elif", "Emma", "Farid", "Grace", "Hana", "Hugo"),
    *("Ines", "Jakub", "James", "Jin", "Kofi", "Lea", "Liam"),
    *("Lucia", "Marta", "Mei", "Mohammed", "Nadia", "Noah", "Olga"),
    *("Oscar", "Priya", "Rosa", "Samuel", "Sofia", "Tom", "Yusuf"),
)
LAST_NAMES = (
    *("Ahmed", "Andersson", "Baker", "Berger", "Brown", "Chen", "Costa"),
    *("Dubois", "Evans", "Fischer", "Garcia", "Haddad", "Ivanova", "Jensen"),
    *("Kaya", "Khan", "Kowalski", "Lee", "Lopez", "Martin", "Mensah"),
    *("Meyer", "Moretti", "Nakamura", "Nguyen", "Novak", "O'Brien", "Okafor"),
    *("Patel", "Rossi", "Sato", "Silva", "Smith", "Suzuki", "Taylor"),
    *("Virtanen", "Walker", "Weber", "Wilson", "Zhang"),
)
BRANDS = (
    *("Alder", "Brightwater", "Copperfield", "Dune", "Eastgate", "Fennel", "Greywing"),
    *("Harbour", "Iris", "Juniper", "Kestrel", "Lantern", "Meadow", "Northstar"),
    *("Orchard", "Pine", "Quill", "Rowan", "Saffron"),
)
COMPANIES = ("Trading", "Supplies", "Goods", "Store", "& Sons", "Direct")
EDITIONS = ("Classic", "Compact", "Deluxe", "Essential", "Plus", "Pro")

RATINGS = (5, 5, 5, 5, 5, 5, 5, 5, 4, 4, 4, 4, 3, 3, 2, 1)
"""As often as they are given."""
COMMENTS = {
    5: ("Better than I had hoped.", "Bought a second one for my sister.", "Does exactly what it says."),
    4: ("Very good, though the parcel was late.", "Good value.", "Would buy it again."),
    3: ("Fine for the price.", "Neither good nor bad.", "Smaller than it looks in the picture."),
    2: ("I expected more.", "Scratched after a week."),
    1: ("Stopped working after three days.", "Sent it back."),
}
"""What is said with each rating."""
