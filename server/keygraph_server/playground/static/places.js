// Where a place of the cost report, such as `user.orders.items`, stands in a document.

const PAGE = new Set(['edges', 'nodes', 'node']);

/** The field of a place; null if the document has none there. */
export const fieldAt = (document, operationName, place) => {
  let ast;
  try {
    ast = GraphQL.parse(document);
  } catch {
    return null;
  }
  const operations = ast.definitions.filter((each) => each.kind === 'OperationDefinition');
  const operation = operations.find((each) => each.name?.value === operationName) || operations[0];
  const fragments = new Map(
    ast.definitions.filter((each) => each.kind === 'FragmentDefinition').map((each) => [each.name.value, each]),
  );

  const find = (selections, names, seen) => {
    for (const selection of selections || []) {
      let found = null;
      if (selection.kind === 'Field') {
        const name = (selection.alias || selection.name).value;
        if (name === names[0]) {
          found = names.length === 1 ? selection : find(selection.selectionSet?.selections, names.slice(1), seen);
        }
        if (!found && PAGE.has(selection.name.value)) {
          found = find(selection.selectionSet?.selections, names, seen);
        }
      } else if (selection.kind === 'InlineFragment') {
        found = find(selection.selectionSet.selections, names, seen);
      } else if (!seen.includes(selection.name.value)) {
        const inner = [...seen, selection.name.value];
        found = find(fragments.get(selection.name.value)?.selectionSet.selections, names, inner);
      }
      if (found) {
        return found;
      }
    }
    return null;
  };
  return operation ? find(operation.selectionSet.selections, place.split('.'), []) : null;
};
