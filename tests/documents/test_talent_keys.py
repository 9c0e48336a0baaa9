"""The talent table: its key attributes as fields, and edges whose ends are not the whole key."""

from __future__ import annotations

from keygraph.model.instances import instance
from keygraph_examples import talent
from keygraph_resolvers import build_schema
from tests.conftest import MakeStore
from tests.documents.samples import files_of, serve


async def test_a_number_that_is_a_key_attribute_of_texts(make_store: MakeStore) -> None:
    """`node_id: int` is stored as `NodeId`, which is the table's partition key, of type S: what stands there is the key's text, not a number. A field whose attribute is a key attribute is what its template says there."""
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    assert await sample.ask("{ people(where: {nodeId: {eq: 13}}) { nodes { name } } }") == {
        "people": {"nodes": [{"name": "Mei Tanaka"}]}
    }


async def test_a_number_that_is_a_key_attribute_of_texts_is_read(make_store: MakeStore) -> None:
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    person = talent.graph.types["Person"]
    item = instance(sample.graph.types["Person"], {"NodeId": "1", "TypeTarget": "NAME|1|PERSON", "Data": "J"})
    assert (item.node_id, person.name) == (1, "Person")


async def test_to_where_the_ends_are_not_the_whole_key(make_store: MakeStore) -> None:
    sample = await serve(talent.graph, make_store, *files_of("talent"))
    jonas = (await sample.ask("{ person(nodeId: 9) { id } }"))["person"]["id"]
    assert await sample.ask(
        f'{{ place(nodeId: 3) {{ people(to: ["{jonas}"]) {{ edges {{ bond }} }} }} }}'
    ) == {"place": {"people": {"edges": [{"bond": "WORK"}]}}}


def test_a_list_at_the_root_has_a_description() -> None:
    fields = build_schema(talent.graph)._schema.query_type.fields  # type: ignore[union-attr]
    assert [name for name, field in fields.items() if not field.description] == []
