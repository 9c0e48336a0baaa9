// Bundles the libraries of the playground: `npm ci && npm run build`.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const OUT = '../keygraph_server/playground/assets';
const MONACO = 'monaco-editor/esm/vs';

// GraphiQL imports the whole of Monaco by a module of monaco-graphql.
const smallMonaco = {
  name: 'small-monaco',
  setup({ onResolve }) {
    const path = new URL('monaco.js', import.meta.url).pathname;
    onResolve({ filter: /^(\.|monaco-graphql\/esm)\/monaco-editor(\.js)?$/ }, () => ({ path, sideEffects: true }));
  },
};

rmSync(OUT, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: {
    libraries: 'libraries.js',
    monaco: 'monaco.js',
    cytoscape: 'cytoscape',
    'editorWorkerService.worker': `${MONACO}/editor/editor.worker.js`,
    'json.worker': `${MONACO}/language/json/json.worker.js`,
    'graphql.worker': 'monaco-graphql/esm/graphql.worker.js',
  },
  outdir: OUT,
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  loader: { '.ttf': 'file' },
  legalComments: 'none',
  logLevel: 'warning',
  // GraphiQL imports a script under these names, which has no parser for who imports it: not for its Prettify button.
  alias: { 'prettier/parser-babel': 'prettier/plugins/babel', 'prettier/parser-graphql': 'prettier/plugins/graphql' },
  plugins: [smallMonaco],
  metafile: true,
});

const packages = new Set(Object.keys(metafile.inputs).map((file) => /.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]));
const licenses = [...packages].filter(Boolean).sort().map((folder) => {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  return `${folder.replace(/.*node_modules\//, '')}\n\n${file ? readFileSync(`${folder}/${file}`, 'utf-8') : JSON.parse(readFileSync(`${folder}/package.json`)).license}`;
});
writeFileSync(`${OUT}/licenses.txt`, licenses.join(`\n\n${'-'.repeat(80)}\n`));
