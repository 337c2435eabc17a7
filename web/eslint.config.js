import js from '@eslint/js';
import prettier from 'eslint-config-prettier';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

/** Who may know whom: ui nobody, api and live only each other, nouns everything but pages, pages all.
 * @param {string[]} files @param {string} forbidden @param {string} why
 * @returns {import('eslint').Linter.Config} */
const rooms = (files, forbidden, why) => ({
  files,
  rules: {
    'no-restricted-imports': [
      'error',
      { patterns: [{ regex: forbidden, message: why, caseSensitive: true }] },
    ],
  },
});

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
  rooms(['src/lib/*/**'], String.raw`(^|/)routes/`, 'Pages use nouns, nouns never use pages.'),
  rooms(
    ['src/lib/ui/**'],
    String.raw`^(\$lib/(?!ui/)|\$routes|\$app/|\.\./(?!ui/))`,
    'ui knows nothing of the domain.',
  ),
  rooms(
    ['src/lib/api/**', 'src/lib/live/**'],
    String.raw`^(\$lib/(?!(api|live)/)|\$app/|\.\./(?!(api|live)/)|.*/[A-Z][A-Za-z]*\.svelte$)`,
    'api and live know only each other.',
  ),
);
