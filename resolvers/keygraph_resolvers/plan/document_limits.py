"""The limits of a document, checked before it is validated or planned.

One walk over the parsed document measures each of its operations with its fragments spread. A fragment is measured
once, so the time is proportional to the size of the document, whatever it expands to. Numbers are capped at `MOST`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import graphql
from graphql.language.parser import Parser

from keygraph.errors import KeygraphError
from keygraph.limits import Limits
from keygraph_resolvers.codes import OperationCode
from keygraph_resolvers.engine.worst import MOST
from keygraph_resolvers.schema.definitions import kind_of
from keygraph_resolvers.schema.field_kinds import (
    Attribute,
    ChangedRecord,
    Edges,
    FarNode,
    Nodes,
    PageInfo,
    ResultList,
    Stored,
    WrittenRecord,
)

_SAME_LEVEL = (Attribute, ChangedRecord, Edges, FarNode, Nodes, PageInfo, ResultList, Stored, WrittenRecord)
"""Fields that lead no further into the graph than their parent."""
_INTROSPECTIONS = 1.5
"""The introspection that an operation may request, as a multiple of GraphiQL's."""

_SPLIT = "Split it into several operations."

_NUMBER_CHARACTERS = 400
"""The most characters of a number in a document. No number of a table is longer, nor is any `Float`."""
_LONG_NUMBER = re.compile(r"[0-9]{100}")
"""Matches every number that is too long, because a number has at most three parts with digits (`1.5e3`)."""


class DocumentLimit(KeygraphError):
    """The document exceeds one of the limits on its size."""

    code = OperationCode.DOCUMENT_LIMIT


class DepthLimit(KeygraphError):
    """The document is nested too deeply."""

    code = OperationCode.DEPTH_LIMIT


class LimitedDocuments:
    """Parses documents of a schema, within limits."""

    def __init__(self, schema: graphql.GraphQLSchema, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._introspected = _introspected(schema)

    @cached_property
    def _most_introspected(self) -> float:
        """How much a document may introspect. Only computed where one does."""
        usual = graphql.parse(
            graphql.get_introspection_query(
                specified_by_url=True,
                directive_is_repeatable=True,
                schema_description=True,
                input_value_deprecation=True,
                one_of=True,
            )
        )
        [(_, size)] = _Walk(self._schema, usual, self._introspected).operations()
        return _INTROSPECTIONS * size.introspected

    def check_length(self, text: str) -> None:
        """Raises GraphQLError if a document has too many characters."""
        if len(text) > self._limits.max_document_characters:
            raise _beyond(
                DocumentLimit, "This document has", self._limits.max_document_characters, "characters"
            )

    def parsed(self, text: str) -> graphql.DocumentNode:
        """Parses a document. Raises GraphQLError if that fails, or the document exceeds a limit."""
        limits = self._limits
        self.check_length(text)
        try:
            document = _parsed(text, limits.max_tokens)
        except graphql.GraphQLError as error:
            if "Document contains more than" in error.message:
                what = "comments" if "comments" in error.message else "tokens"
                raise _beyond(DocumentLimit, "This document has", limits.max_tokens, what) from None
            if "nested too deeply" in error.message:
                raise _nested() from None
            raise
        if _LONG_NUMBER.search(text):
            _refuse_long_numbers(document)
        try:
            self._hold(document)
        except RecursionError:
            raise _nested() from None
        return document

    def _hold(self, document: graphql.DocumentNode) -> None:
        """Raises GraphQLError for the first limit that an operation of the document exceeds."""
        limits = self._limits
        fields = 0
        for root_fields, size in _Walk(self._schema, document, self._introspected).operations():
            # Every operation of the document is validated.
            fields = min(MOST, fields + size.fields)
            for what, found, most in (
                ("root fields", root_fields, limits.max_root_fields),
                ("aliases in one selection", size.most_aliased, limits.max_aliases),
                ("aliases", size.aliases, limits.max_aliases_in_all),
                ("fields, with its fragments spread", fields, limits.max_fields),
            ):
                if found > most:
                    raise _beyond(DocumentLimit, "This operation has", most, what)
            if 0 < limits.depth_limit < size.depth:
                what = "root fields, lists and ends"
                raise _beyond(DepthLimit, "This operation nests", limits.depth_limit, what, depth=size.depth)
            if size.introspected and size.introspected > self._most_introspected:
                problem = f"asks for more than {_INTROSPECTIONS} times what GraphiQL asks of introspection"
                raise caused(DocumentLimit(f"This operation {problem}. {_SPLIT}"))


def _parsed(text: str, most_tokens: int) -> graphql.DocumentNode:
    """Parses a document of at most so many tokens, and of as many comments. Raises GraphQLError."""
    source = graphql.Source(text)
    lexer = graphql.Lexer(source)
    token: graphql.Token | None = lexer.token
    parser = Parser(source, lexer=lexer, max_lexical_tokens=most_tokens, max_comments=most_tokens)
    try:
        return parser.parse_document()
    except RecursionError:
        raise _nested() from None
    finally:
        # Only the garbage collector frees tokens that reference each other in both directions. Nobody needs comments.
        while token is not None:
            following = token.next
            while following is not None and following.kind is graphql.TokenKind.COMMENT:
                following = following.next
            token.prev, token.next, token = None, following, following


def _refuse_long_numbers(document: graphql.DocumentNode) -> None:
    """Raises GraphQLError for a number that would take long to parse."""
    token = document.loc.start_token if document.loc is not None else None
    while token is not None:
        length = len(token.value or "")
        if length > _NUMBER_CHARACTERS and token.kind in (graphql.TokenKind.INT, graphql.TokenKind.FLOAT):
            problem = f"This document has a number of more than {_NUMBER_CHARACTERS} characters."
            raise caused(DocumentLimit(problem), limit=_NUMBER_CHARACTERS)
        token = token.next


def _introspected(schema: graphql.GraphQLSchema) -> dict[str, float]:
    """Returns the average number of elements of each list of introspection, over all types."""
    types = [*schema.type_map.values()]
    fields = [field for each in types if graphql.is_object_type(each) for field in each.fields.values()]
    inputs = sum(len(each.fields) for each in types if graphql.is_input_object_type(each))
    largest = max(len(each.fields) for each in types if graphql.is_object_type(each))
    return {
        "__type": largest * len(types) / len(fields),  # the one that is named may be the largest
        "types": len(types),
        "fields": len(fields) / len(types),
        "args": sum(len(each.args) for each in fields) / len(fields),
        "inputFields": inputs / len(types),
        "ofType": 0.5,  # of most types there is none
    }


def _nested() -> graphql.GraphQLError:
    return caused(DepthLimit(f"This document is nested too deeply to be read. {_SPLIT}"))


def _beyond(
    kind: type[KeygraphError], problem: str, limit: int, what: str, **numbers: int
) -> graphql.GraphQLError:
    return caused(kind(f"{problem} more than {limit:,} {what}. {_SPLIT}"), limit=limit, **numbers)


def caused(error: KeygraphError, **numbers: int) -> graphql.GraphQLError:
    return graphql.GraphQLError(str(error), original_error=error, extensions=numbers)


@dataclass(slots=True)
class _Size:
    """The size of a selection, with its fragments spread."""

    fields: int = 0
    own_fields: int = 0
    """The fields of the selection itself."""
    own_aliases: int = 0
    most_aliased: int = 0
    """The number of aliases in the selection that has most."""
    aliases: int = 0
    depth: int = 0
    introspected: float = 0.0
    """The approximate number of values from introspection."""

    def spread(self, other: _Size) -> None:
        """Adds the selection of a fragment in its place."""
        self.own_fields = min(MOST, self.own_fields + other.own_fields)
        self.own_aliases = min(MOST, self.own_aliases + other.own_aliases)
        self._add(other, 0, 1.0)

    def add_field(self, below: _Size, *, is_aliased: bool, deeper: int, times: float) -> None:
        self.own_fields += 1
        self.own_aliases += is_aliased
        self.fields += 1
        self.aliases += is_aliased
        self.introspected = min(MOST, self.introspected + times)
        self._add(below, deeper, times)

    def _add(self, other: _Size, deeper: int, times: float) -> None:
        self.fields = min(MOST, self.fields + other.fields)
        self.aliases = min(MOST, self.aliases + other.aliases)
        self.most_aliased = max(self.most_aliased, self.own_aliases, other.most_aliased)
        self.depth = max(self.depth, other.depth + deeper)
        self.introspected = min(MOST, self.introspected + other.introspected * (times or 1.0))


_NOTHING = _Size()


class _Walk:
    """Measures the operations of a document that may not be valid: names in it may be undefined."""

    def __init__(
        self, schema: graphql.GraphQLSchema, document: graphql.DocumentNode, introspected: Mapping[str, float]
    ) -> None:
        """`introspected` is the average number of elements of the lists of introspection."""
        self._schema = schema
        self._document = document
        definitions = document.definitions
        self._fragments = {
            each.name.value: each for each in definitions if isinstance(each, graphql.FragmentDefinitionNode)
        }
        self._sizes: dict[str, _Size] = {}
        self._introspected = introspected
        self._roots = [each for each in (schema.query_type, schema.mutation_type) if each is not None]

    def operations(self) -> Iterator[tuple[int, _Size]]:
        """Returns the number of root fields of each operation, and its size."""
        for each in self._document.definitions:
            if isinstance(each, graphql.OperationDefinitionNode):
                size = self._size(self._schema.get_root_type(each.operation), each.selection_set)
                yield size.own_fields, size

    def _size(self, type_: graphql.GraphQLNamedType | None, selected: graphql.SelectionSetNode) -> _Size:
        size = _Size()
        for selection in selected.selections:
            match selection:
                case graphql.FieldNode():
                    self._add_field(size, type_, selection)
                case graphql.FragmentSpreadNode(name=name):
                    size.spread(self._of_fragment(name.value))
                case graphql.InlineFragmentNode():
                    size.spread(self._size(self._condition(selection) or type_, selection.selection_set))
        return size

    def _of_fragment(self, name: str) -> _Size:
        found = self._sizes.get(name)
        if found is None:
            # Validation refuses a fragment that spreads itself.
            self._sizes[name] = _NOTHING
            fragment = self._fragments.get(name)
            if fragment is None:
                return _NOTHING
            found = self._sizes[name] = self._size(self._condition(fragment), fragment.selection_set)
        return found

    def _condition(self, node: Any) -> graphql.GraphQLNamedType | None:
        condition = node.type_condition
        return None if condition is None else self._schema.get_type(condition.name.value)

    def _add_field(
        self, size: _Size, type_: graphql.GraphQLNamedType | None, node: graphql.FieldNode
    ) -> None:
        name = node.name.value
        definition = self._schema.get_field(type_, name) if graphql.is_composite_type(type_) else None
        kind = None if definition is None else kind_of(definition)
        of = None if definition is None else graphql.get_named_type(definition.type)
        is_introspection = any(each is not None and each.name.startswith("__") for each in (type_, of))
        times = self._introspected.get(name, 1.0) if is_introspection else 0.0
        selected = node.selection_set
        below = _NOTHING if selected is None else self._size(of, selected)
        leads_on = selected is not None and name != "ofType" and not isinstance(kind, _SAME_LEVEL)
        deeper = int(leads_on or type_ in self._roots)
        size.add_field(below, is_aliased=node.alias is not None, deeper=deeper, times=times)
