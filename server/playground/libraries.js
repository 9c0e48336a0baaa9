// What the playground's own scripts use, as globals.
import 'graphiql/graphiql.css';
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import '@graphiql/plugin-explorer/style.css';
import { explorerPlugin } from '@graphiql/plugin-explorer';
import * as GraphiQLReact from '@graphiql/react';
import { HISTORY_PLUGIN } from '@graphiql/plugin-history';
import { createGraphiQLFetcher, createLocalStorage } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import * as GraphQL from 'graphql';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

globalThis.MonacoEnvironment = {
  getWorker: (_, label) => new Worker(new URL(`${label}.worker.js`, import.meta.url), { type: 'module' }),
};
Object.assign(globalThis, { React, createRoot, GraphQL, GraphiQL, GraphiQLReact, createGraphiQLFetcher, createLocalStorage, explorerPlugin, HISTORY_PLUGIN });
