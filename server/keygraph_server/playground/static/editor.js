// GraphiQL's editor, for what is outside of it: opens operations in its tabs, runs them, marks places in them.
import { change, state } from './page.js';
import { fieldAt } from './places.js';

const inside = { editor: null, execution: null, theme: null };
let mark = null;
let isReady = null;

/** Done when there is an editor to open operations in. */
export const ready = new Promise((resolve) => {
  isReady = resolve;
});

/** Stands inside GraphiQL, and keeps what its hooks give. */
export const useEditor = () => {
  const { useEditorContext, useExecutionContext, useSchemaContext, useTheme } = GraphiQL.React;
  inside.editor = useEditorContext({ nonNull: true });
  inside.execution = useExecutionContext({ nonNull: true });
  inside.theme = useTheme();
  useLabels();
  React.useEffect(() => {
    if (inside.editor.queryEditor && inside.editor.variableEditor) {
      isReady();
    }
  });
  const { schema } = useSchemaContext({ nonNull: true });
  React.useEffect(() => {
    if (schema && schema !== state.schema) {
      change({ schema });
    }
  }, [schema]);
};

const LABELS = { queryEditor: 'Operation', variableEditor: 'Variables', headerEditor: 'Headers', responseEditor: 'Answer' };

/** Names GraphiQL's fields for screen readers, and lets keys scroll them. */
const useLabels = () =>
  React.useEffect(() => {
    for (const [name, label] of Object.entries(LABELS)) {
      const editor = inside.editor[name];
      editor?.getInputField().setAttribute('aria-label', label);
      editor?.getScrollerElement().setAttribute('tabindex', '0');
    }
    nameTabs();
  });

/** Makes GraphiQL's bar of tabs a group of buttons: a tab of ARIA holds no other button, but these hold the one that closes them. */
const nameTabs = () => {
  const roles = { '.graphiql-tabs': 'group', '.graphiql-tab': 'none', '.graphiql-session': 'group' };
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

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Opens an operation in a tab: the one that has it, the present one if that is empty, or a new one. */
export const open = async (document, variables = '') => {
  const { editor } = inside;
  const place = editor.tabs.findIndex((tab, index) => index !== editor.activeTabIndex && tab.query === document);
  if (editor.queryEditor.getValue() === document) {
    return;
  }
  if (place >= 0) {
    editor.changeTab(place);
    return;
  }
  if (editor.queryEditor.getValue().trim()) {
    editor.addTab();
    await wait(50);
  }
  inside.editor.queryEditor.setValue(document);
  inside.editor.variableEditor?.setValue(variables);
};

export const run = async () => {
  // GraphiQL reads the operations of a changed text a moment later.
  await wait(200);
  if (!inside.execution.isFetching) {
    inside.execution.run();
  }
};

/** What a document does: it is a mutation if it has one. */
export const kindOf = (document) => {
  try {
    const kinds = GraphiQL.GraphQL.parse(document).definitions.map(({ operation }) => operation);
    return kinds.includes('mutation') ? 'mutation' : kinds.find(Boolean) || 'query';
  } catch {
    return 'query';
  }
};

/** What stands in the editor. */
export const written = () => inside.editor?.queryEditor?.getValue() || '';
export const variables = () => inside.editor?.variableEditor?.getValue() || '';

export const toggleTheme = () => inside.theme.setTheme(state.theme === 'dark' ? 'light' : 'dark');

/** Marks the field of a place in the editor. */
export const markPlace = (place) => {
  mark?.clear();
  mark = null;
  const editor = inside.editor?.queryEditor;
  const field = place && editor ? fieldAt(editor.getValue(), editor.operationName, place) : null;
  if (field) {
    const from = editor.posFromIndex(field.loc.start);
    const last = field.arguments.at(-1);
    // With its arguments, and the parenthesis after them.
    const to = editor.posFromIndex(last ? last.loc.end + 1 : field.name.loc.end);
    mark = editor.markText(from, to, { className: 'marked-place' });
    editor.scrollIntoView({ from, to: from }, 40);
  }
};
