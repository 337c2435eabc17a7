import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import { above, FOLDERS } from './folders.js';
import svelteConfig from './svelte.config.js';

/** Two folders need less than what is below them: ui knows nothing of the domain, live only api. */
const STRICTER = {
  ui: String.raw`^(\$lib/(?!ui/)|\$app/|\.\./(?!ui/))`,
  live: String.raw`^(\$lib/(?!(api|live)/)|\$app/|\.\./(?!(api|live)/)|.*/[A-Z][A-Za-z]*\.svelte$)`,
  api: String.raw`^(\$lib/(?!api/)|\$app/|\.\./(?!api/)|.*/[A-Z][A-Za-z]*\.svelte$)`,
};

/** Folders import only those below them in folders.js. @returns {import('eslint').Linter.Config[]} */
const line = () =>
  Object.keys(FOLDERS).map((folder) => ({
    files: [`src/lib/${folder}/**`],
    rules: { 'no-restricted-imports': ['error', { patterns: forbidden(folder) }] },
  }));

/** @param {string} folder */
function forbidden(folder) {
  const upward = above(folder).join('|');
  return [
    { regex: String.raw`(^|/)routes/`, message: 'A folder does not import pages.' },
    upward && {
      regex: String.raw`^(\$lib|\.\.)/(${upward})/`,
      message: `${folder} imports only the folders below it in folders.js.`,
    },
    folder in STRICTER && {
      regex: STRICTER[/** @type {keyof typeof STRICTER} */ (folder)],
      message: 'ui knows nothing of the domain; api and live know only each other.',
    },
  ]
    .filter((pattern) => pattern !== '' && pattern !== false)
    .map((pattern) => ({ ...pattern, caseSensitive: true }));
}

export default ts.config(
  { ignores: ['build/', '.svelte-kit/', 'node_modules/', 'src/lib/api/schema.d.ts'] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  prettier,
  ...svelte.configs.prettier,
  {
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
    rules: {
      'no-undef': 'off',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'SvelteAttribute[key.name="style"]',
          message: 'The policy forbids style attributes: use a class, or style:--name={value}.',
        },
      ],
      // Every address comes from lib/routes.ts, and the app is always served from the root.
      'svelte/no-navigation-without-resolve': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    // The tree is replaced, never mutated; its maps and sets are bookkeeping that nobody sees.
    files: ['src/lib/live/**'],
    rules: { 'svelte/prefer-svelte-reactivity': 'off' },
  },
  ...line(),
);
