/** Colours for programs: highlight.js and the language at hand, fetched when a program is shown. */
import type { LanguageFn } from 'highlight.js';
import { sanitize } from './sanitize';

const LONGEST = 40_000;

const LANGUAGES: Record<string, () => Promise<{ default: LanguageFn }>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  http: () => import('highlight.js/lib/languages/http'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
};

const ALSO_CALLED: Record<string, string> = {
  'c#': 'csharp',
  'c++': 'cpp',
  cs: 'csharp',
  console: 'bash',
  docker: 'dockerfile',
  golang: 'go',
  h: 'c',
  hpp: 'cpp',
  html: 'xml',
  js: 'javascript',
  jsx: 'javascript',
  kt: 'kotlin',
  patch: 'diff',
  postgresql: 'sql',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  sqlite: 'sql',
  svelte: 'xml',
  svg: 'xml',
  toml: 'ini',
  ts: 'typescript',
  tsx: 'typescript',
  vue: 'xml',
  yml: 'yaml',
  zsh: 'bash',
};

/** The program in colours, or null when its language is unknown or it is too long to colour. */
export async function highlight(text: string, language: string): Promise<DocumentFragment | null> {
  const name = ALSO_CALLED[language.toLowerCase()] ?? language.toLowerCase();
  const load = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (!load || text.length > LONGEST) return null;
  const fetched = await Promise.all([import('highlight.js/lib/core'), load()]).catch(() => null);
  if (!fetched) return null; // no connection: in one colour
  const [{ default: hljs }, grammar] = fetched;
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, grammar.default);
  return sanitize(hljs.highlight(text, { language: name, ignoreIllegals: true }).value);
}
