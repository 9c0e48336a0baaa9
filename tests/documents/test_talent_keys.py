"""The talent table: edges whose ends are not the whole key, and descriptions."""

from __future__ import annotations

from keygraph_examples import talent
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents.samples import files_of, serve


async def test_to_where_the_ends_are_not_the_whole_key(make_store: MakeStore) -> None:
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    jonas = (await sample.ask("{ person(nodeId: 9) { id } }"))["person"]["id"]
    assert await sample.ask(
        f'{{ place(nodeId: 3) {{ people(to: ["{jonas}"]) {{ edges {{ bond }} }} }} }}'
    ) == {"place": {"people": {"edges": [{"bond": "WORK"}]}}}


def test_a_list_at_the_root_has_a_description() -> None:
    fields = build_schema(talent.graph)._schema.query_type.fields  # type: ignore[union-attr]
    assert [name for name, field in fields.items() if not field.description] == []
