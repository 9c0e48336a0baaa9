"""Tables that are hard to tell from a sample: what their drafts declare, and what they are in doubt about."""

from __future__ import annotations

from pathlib import Path

import pytest

from keygraph_resolvers import build_schema
from tests.documents.invented_tables import TABLES
from tests.keygraph.drafts import drafted, ruff

VALUES = "more are taken for values, because their items have the same attributes"
DECLARED: dict[str, tuple[str, ...]] = {
    "bank": (
        '@node("ACCT#{acct_id}", "INFO")\n',
        '@record("{acct}", "TXN#{txn_time}")\n',
        "    # doubt: an enum? Its values are credit, debit\n    type: str\n",
        "# doubt: type does not tell the shapes of keys apart, so it is a field\n",
    ),
    "stores": (
        '@node("{country_id}", item=False)\n',
        '@record("{country}", "{label}#{label_2}#{sort_part}")\n',
        f"# doubt: TX, CA, IDF, PAC, BY and 6 {VALUES}\n",
    ),
    "stocks": (
        '@record("{symbol}", "{day}")\nclass SymbolItem:\n    symbol: Symbol\n    day: date\n',
        'formats={date: Format("{:%Y/%m/%d}".format, slashed_date, ordered=True)}',
        f"# doubt: AAPL, MSFT, GOOG, TSLA, NVDA and 8 {VALUES}\n",
    ),
    "followers": (
        '@node("{follower_id}", "PROFILE")\n',
        '@edge("{follower}", "{to_follower.follower_id}")\n',
        "    follower: Follower\n    to_follower: Follower\n    since: date\n",
    ),
    "files": (
        '@node("{user_id}", "user")\n',
        '@record("{user}", "file:{file_id}")\n',
        '# doubt: in PK, ":" is taken for a part of the last value\n',
    ),
    "roles": ('@record("{user}", "perm:{perm_id}")\n',),
    "invites": (
        '@record("{team}", "EMAIL#{email}", gsi1("EMAIL#{email}", "EMAIL#{email}"))\n',
        "    email: str\n",
    ),
    "visits": (
        '@record("{owner}", "VISIT#{day}")\n',
        '    owner: Owner = stored("owner")\n    day: date\n',
        "    owner_visits: Many[OwnerVisit] = many(index=by_day)\n",
    ),
    "both dates": (
        '@record("{room}", "STAY#{stay_date}")\n',
        "    # doubt: a date? Others are written with dashes\n    stay_date: str\n",
        "    born: date\n",
        "    # doubt: a date? Others are written with dashes\n    due: str\n",
    ),
    "members": (
        '@record("{org}", "USER#{user_id}#PROFILE")\n',
        '@record("{org}", "USER#{user_id}#SETTINGS")\n',
        "    user_profiles: Many[OrgUserProfile]\n    user_settings: Many[OrgUserSettings]\n",
    ),
    "addresses": ('@record("{user}", "PLACE#{place_id}#{label}")\n',),
    "versions": ('@node("DOC#{doc_id}", "v0")\n', '@record("{doc}", "v{number:04d}")\n'),
    "settings": ('@record("{scope}", "{name}")\n',),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_draft_declares_the_types_that_there_are(name: str, tmp_path: Path) -> None:
    declared, items = TABLES[name]
    with drafted(declared, items, tmp_path) as (text, graph):
        for line in DECLARED[name]:
            assert line in text, text
        # What is declared above and one virtual node, if nothing else is.
        assert (
            len(graph.types)
            <= sum(line.startswith(("@node", "@edge", "@record")) for line in DECLARED[name]) + 1
        )
        assert "cannot be read" not in text
        assert "left out" not in text
        build_schema(graph)
    for length in (88, 110):
        assert ruff("format", f"--line-length={length}", text=text) == text
    assert ruff("check", "--select=I,F,E4,E7,E9,N,UP", text=text).strip() in ("", "All checks passed!")
