// GraphiQL's editor, for what is outside of it: opens operations in its tabs, runs them, marks places in them.
import { change, prefersDark, state } from './page.js';
import { fieldAt } from './places.js';

let graphiql = null; // the state of GraphiQL, with its editors and actions
let mark = null;
let isReady = null;

/** Done when there is an editor to open operations in. */
const ready = new Promise((resolve) => {
  isReady = resolve;
});

/** Stands inside GraphiQL, and keeps its state. */
export const useEditor = () => {
  graphiql = GraphiQLReact.useGraphiQL((each) => each);
  React.useEffect(() => {
    nameFields();
    if (graphiql.queryEditor && graphiql.variableEditor) {
      isReady();
    }
  });
  React.useEffect(() => {
    // Monaco's theme is the system's of the moment, unless one was chosen.
    prefersDark.addEventListener('change', () => graphiql.actions.setTheme(graphiql.theme));
    document.addEventListener('keydown', leave);
  }, []);
  const { schema } = graphiql;
  React.useEffect(() => {
    if (schema && schema !== state.schema) {
      change({ schema });
    }
  }, [schema]);
};

/** Leaves an editor by Escape, as Enter enters it: Tab indents there. An Escape that Monaco has a use for does not come here. */
const leave = ({ key, target }) => key === 'Escape' && target.closest('.graphiql-editor')?.focus();

const LABELS = { queryEditor: 'Operation', variableEditor: 'Variables', headerEditor: 'Headers', responseEditor: 'Answer' };

/** Names GraphiQL's fields for screen readers. */
const nameFields = () => {
  for (const [name, ariaLabel] of Object.entries(LABELS)) {
    graphiql[name]?.updateOptions({ ariaLabel });
  }
  nameTabs();
};

/** Makes GraphiQL's bar of tabs a group of buttons: a tab of ARIA holds no other button, but these hold the one that closes them. */
const nameTabs = () => {
  const roles = { '.graphiql-tabs': 'group', '.graphiql-tab': 'none', '#graphiql-session': 'group' };
  for (const [selector, role] of Object.entries(roles)) {
    document.querySelectorAll(selector).forEach((each) => each.setAttribute('role', role));
  }
  for (const each of document.querySelectorAll('.graphiql-tab')) {
    const [name, close] = each.querySelectorAll('button');
    const isActive = each.classList.contains('graphiql-tab-active');
    each.removeAttribute('aria-selected');
    isActive ? name?.setAttribute('aria-current', 'true') : name?.removeAttribute('aria-current');
    close?.setAttribute('aria-label', `Close ${name.textContent}`);
  }
};

/** Opens an operation in a tab: the one that has it, the present one if that is empty, or a new one. */
export const open = async (document, variables = '') => {
  await ready;
  const { actions, activeTabIndex, queryEditor, tabs, variableEditor } = graphiql;
  const place = tabs.findIndex((tab, index) => index !== activeTabIndex && tab.query === document);
  if (queryEditor.getValue() === document) {
    return;
  }
  if (place >= 0) {
    actions.changeTab(place);
    return;
  }
  if (queryEditor.getValue().trim()) {
    actions.addTab();
  }
  queryEditor.setValue(document);
  variableEditor.setValue(variables);
};

export const run = async () => {
  // GraphiQL reads the operations of a changed text a moment later.
  await new Promise((resolve) => setTimeout(resolve, 200));
  if (!graphiql.isFetching) {
    graphiql.actions.run();
  }
};

/** What a document does: it is a mutation if it has one. */
export const kindOf = (document) => {
  try {
    const kinds = GraphQL.parse(document).definitions.map(({ operation }) => operation);
    return kinds.includes('mutation') ? 'mutation' : kinds.find(Boolean) || 'query';
  } catch {
    return 'query';
  }
};

/** What stands in the editor. */
export const written = () => graphiql?.queryEditor?.getValue() || '';
export const variables = () => graphiql?.variableEditor?.getValue() || '';

export const toggleTheme = () => graphiql.actions.setTheme(state.theme === 'dark' ? 'light' : 'dark');

/** Marks the field of a place in the editor. */
export const markPlace = (place) => {
  mark?.clear();
  mark = null;
  const editor = graphiql?.queryEditor;
  const field = place && editor ? fieldAt(editor.getValue(), graphiql.operationName, place) : null;
  if (field) {
    const last = field.arguments.at(-1);
    // With its arguments, and the parenthesis after them.
    const [from, to] = [field.loc.start, last ? last.loc.end + 1 : field.name.loc.end].map((at) => editor.getModel().getPositionAt(at));
    const range = { startLineNumber: from.lineNumber, startColumn: from.column, endLineNumber: to.lineNumber, endColumn: to.column };
    mark = editor.createDecorationsCollection([{ range, options: { inlineClassName: 'marked-place' } }]);
    editor.revealLineInCenterIfOutsideViewport(from.lineNumber);
  }
};
