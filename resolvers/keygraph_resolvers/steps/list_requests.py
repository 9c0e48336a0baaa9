"""Explains the requests of a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from keygraph.errors import BadUserInput
from keygraph.lists.counting import count_requests
from keygraph.lists.describe import DescribedRequest, described_requests, key_request
from keygraph.lists.reading import Extent, page_requests
from keygraph.model.paths import AccessPath
from keygraph.model.permissions import Seen
from keygraph.walks.levels import LARGEST_PART
from keygraph_resolvers.errors import message_of
from keygraph_resolvers.read.access import links_of
from keygraph_resolvers.read.connection import ListArguments
from keygraph_resolvers.read.run import Run
from keygraph_resolvers.steps.explained import NOTHING, Explained, View, Where, access_text


def explain_requests(
    view: View,
    shown: Explained,
    where: Where,
    path: AccessPath,
    arguments_of: Callable[[Run], ListArguments],
    *,
    is_whole: bool = False,
) -> None:
    """Adds the requests for a page of a list, or for all of it, or why there are none."""
    try:
        arguments = arguments_of(view.run)
        neighbours = arguments.shown(view.run, where.identity)
        if neighbours is None:
            shown.access = NOTHING
            return
        shown.access = _access_text(arguments.seen(view.run))
        _explain_links(view, shown, where, path)
        if arguments.is_key_lookup or arguments.to is not None:
            shown.requests += (_lookup_request(view, path, arguments, is_many=where.is_many),)
            return
        extent, budget = arguments.extent, view.run.limits.read_budget
        if is_whole:
            extent = Extent(budget, budget=budget, attributes=extent.attributes)
        counts = shown.kind == "count"
        requests = count_requests(neighbours) if counts else page_requests(neighbours, extent)
        times = len(path.keys.shard_texts)
        shown.requests += (described_requests(view.run.graph, requests, times),) if requests else ()
    except Exception as error:
        shown.problem = message_of(error)


def walked_request(view: View, path: AccessPath, budget: int) -> DescribedRequest:
    """Returns the request for a part of a list that a walk reads."""
    arguments = ListArguments(view.run, path, {}, frozenset())
    neighbours = arguments.any_shown
    extent = replace(arguments.extent, count=min(LARGEST_PART, budget))
    requests = page_requests(neighbours, extent)
    return described_requests(view.run.graph, requests, len(path.keys.shard_texts))


def _explain_links(view: View, shown: Explained, where: Where, path: AccessPath) -> None:
    """Adds the lookups of the other items that decide what the viewer sees of the list."""
    for member in path.each:
        for each in links_of(view.run, member.record):
            is_one = each.end is not None and each.end.name == member.end
            is_many = where.is_many or not is_one
            shown.requests += (view.link_request(each, replace(where, is_many=is_many)),)


def _lookup_request(
    view: View, path: AccessPath, arguments: ListArguments, *, is_many: bool
) -> DescribedRequest:
    """Returns how items are read whose keys are known, or the nodes that a client names."""
    graph = view.run.graph
    if arguments.to is None:
        return key_request(graph, path.record, is_many=is_many)
    count = len(arguments.to)
    if path.finds_by_node:
        request = key_request(graph, path.record, is_many=True)
        return replace(request, keys=f"{request.keys}, {count} {'key' if count == 1 else 'keys'}")
    between = path.keys_of_both_ends
    if between is None:
        raise BadUserInput(f"no key of {path.record.name} contains both its ends")
    keys = " AND ".join(
        f"{key.name} = {template}"
        for key, template in zip(between.attributes, between.templates, strict=False)
    )
    return DescribedRequest(
        "Query", between.index_name, f"{keys}, {count} {'time' if count == 1 else 'times'}"
    )


def _access_text(seen: Seen) -> str:
    """Returns the condition for the viewer to see an item: for several types, the condition of each."""
    texts = {each.record.name: access_text(decision) for each, decision in seen.items()}
    if len(texts) == 1 or not any(texts.values()):
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text or 'always'}" for name, text in texts.items())
