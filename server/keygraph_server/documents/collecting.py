"""Reads documents from files, and checks each against a schema and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphql

from keygraph import BadUserInput
from keygraph_resolvers import Service
from keygraph_resolvers.naming.global_ids import global_id
from keygraph_resolvers.plan.explained import Explained
from keygraph_server.documents.manifest import TrustedDocument, document_id, read_documents
from keygraph_server.errors import CommandError

_SUFFIXES = (".graphql", ".gql")


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document before it is checked."""

    source: str
    """The file that contains it."""
    id: str
    body: str


def found_documents(source: Path) -> list[FoundDocument]:
    """The documents of a folder of `.graphql` files, or those of a manifest, with its ids.

    Each operation in a folder becomes a document, with the fragments that it needs from any file of the folder. It is
    printed as Apollo's tools print it, so its id is the one that they compute. Raises CommandError.
    """
    if source.is_file():
        return [FoundDocument(str(source), key, body) for key, body in read_documents(source).items()]
    files = sorted(file for file in source.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not files:
        raise CommandError(f"{source} has no .graphql file", "Name a folder with operations")
    named: dict[
        tuple[type[graphql.ExecutableDefinitionNode], str], tuple[Path, graphql.ExecutableDefinitionNode]
    ] = {}
    for file in files:
        for definition in _definitions(file):
            if definition.name is None:
                raise CommandError(f"{file} has an operation without a name", "Name it: clients ask by name")
            name = definition.name.value
            if (type(definition), name) in named:
                other, _ = named[type(definition), name]
                raise CommandError(f"{file} and {other} both define {name}", "Rename one of them")
            named[type(definition), name] = (file, definition)
    every = graphql.DocumentNode(definitions=tuple(definition for _, definition in named.values()))
    found = []
    for name, document in graphql.separate_operations(every).items():
        file, operation = named[graphql.OperationDefinitionNode, name]
        fragments = [
            each for each in document.definitions if isinstance(each, graphql.FragmentDefinitionNode)
        ]
        needed = sorted(fragments, key=lambda each: each.name.value)
        body = "\n\n".join(graphql.print_ast(each) for each in (operation, *needed))
        found.append(FoundDocument(str(file), document_id(body), body))
    return found


def _definitions(file: Path) -> Iterator[graphql.ExecutableDefinitionNode]:
    """The operations and fragments of a file. Type definitions are left out."""
    try:
        document = graphql.parse(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, graphql.GraphQLError) as error:
        raise CommandError(f"{file} is not a GraphQL document: {_one_line(error)}", "Fix it") from None
    for definition in document.definitions:
        if isinstance(definition, graphql.ExecutableDefinitionNode):
            yield definition


def checked_documents(
    found: Sequence[FoundDocument], service: Service
) -> tuple[list[TrustedDocument], list[str]]:
    """The documents with their bounds, by name, and the problems of the others."""
    trusted: list[TrustedDocument] = []
    problems: list[str] = []
    for each in found:
        try:
            trusted.append(_checked(each, service))
        except (BadUserInput, graphql.GraphQLError) as error:
            problems.append(f"{each.source}: {_one_line(error)}")
    return sorted(trusted, key=lambda document: document.name), problems


def _checked(found: FoundDocument, service: Service) -> TrustedDocument:
    definitions = graphql.parse(found.body).definitions
    operations = [each for each in definitions if isinstance(each, graphql.OperationDefinitionNode)]
    if len(operations) != 1:
        raise BadUserInput(f"a document has one operation, this one has {len(operations)}")
    operation = operations[0]
    name = operation.name.value if operation.name else ""
    explanation = service.explain(found.body, {}, name or None)
    # A problem with a variable's stand-in is not the document's fault.
    problems = () if explanation.stand_ins else _problems(explanation.steps)
    for problem in (explanation.refusal, *problems):
        if problem is not None:
            raise BadUserInput(f"{name}: {problem}")
    bounds = [
        service.explain(found.body, given, name or None).bound.total for given in _largest(service, operation)
    ]
    bound = max(bounds, key=lambda figures: (figures.read_units, figures.requests))
    return TrustedDocument(found.id, name, operation.operation.value, found.body, bound.as_dict)


def _largest(service: Service, operation: graphql.OperationDefinitionNode) -> list[dict[str, Any]]:
    """The values of variables that ask for most: the largest pages, and as many ids as a list may have.

    Ids of each type are tried in turn, because the reads depend on the type; a variable that is not the argument `id`
    may be a key instead.
    """
    types = {
        variable.variable.name.value: graphql.print_ast(variable.type).replace("!", "")
        for variable in operation.variable_definitions or ()
    }
    pages = {name: service.limits.max_page_size for name, type_ in types.items() if type_ == "Int"}
    if not {"ID", "[ID]"} & set(types.values()):
        return [pages]
    names_of_ids = _variables_of(operation, "id")
    found = []
    for record in service.schema.graph.types.values():
        ids = [
            global_id(record, (str(n),) * len(record.identity)) for n in range(1, service.limits.max_ids + 1)
        ]
        of_lists = {name: ids for name, type_ in types.items() if type_ == "[ID]"}
        single = [name for name, type_ in types.items() if type_ == "ID"]
        for keys in ({}, {name: "1" for name in single if name not in names_of_ids}):
            found.append({**pages, **of_lists, **dict.fromkeys(single, ids[0]), **keys})
    return found


def _variables_of(operation: graphql.OperationDefinitionNode, name: str) -> set[str]:
    """The variables used as an argument of that name."""
    found: set[str] = set()

    class Arguments(graphql.Visitor):
        def enter_argument(self, node: graphql.ArgumentNode, *_: object) -> None:
            if node.name.value == name and isinstance(node.value, graphql.VariableNode):
                found.add(node.value.name.value)

    graphql.visit(operation, Arguments())
    return found


def _problems(steps: Sequence[Explained]) -> Iterator[str | None]:
    for step in steps:
        yield step.problem
        yield from _problems(step.steps)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
