"""Documents of a few lines that ask for more than anybody can count."""

from __future__ import annotations


def bomb(levels: int) -> str:
    """A document of so many fragments which asks for two to the power of them."""
    hop = "loans { nodes { loans { nodes { ...F%d } } } }"
    fragments = [
        f"fragment F{level} on Member {{ a: {hop % (level + 1)} b: {hop % (level + 1)} }}"
        for level in range(levels)
    ]
    fragments.append(f"fragment F{levels} on Member {{ name }}")
    return "{ members { nodes { ...F0 } } }\n" + "\n".join(fragments)


def subsets(levels: int) -> str:
    """A document in which two aliases of each level spread other fragments of the next one: no two of its two to the
    power of them selections are the same."""
    hop = "loans { nodes { loans { nodes { %s } } } }"
    fragments = []
    for level in range(levels):
        below = level + 1
        always, also = hop % f"...Z{below}", hop % f"...Z{below} ...X{below}n0"
        fragments.append(f"fragment Z{level} on Member {{ a: {always} b: {also} }}")
        for number in range(level):
            shifted = hop % f"...X{below}n{number + 1}"
            fragments.append(f"fragment X{level}n{number} on Member {{ a: {shifted} b: {shifted} }}")
    fragments += [f"fragment X{levels}n{number} on Member {{ n{number}: name }}" for number in range(levels)]
    fragments.append(f"fragment Z{levels} on Member {{ name }}")
    return "{ members { nodes { ...Z0 } } }\n" + "\n".join(fragments)
