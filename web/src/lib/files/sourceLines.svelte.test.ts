import { expect, it } from 'vitest';
import { isMarkdown, languageOf, splitLines } from './sourceLines';

function markup(html: string): HTMLElement {
  const element = document.createElement('div');
  element.innerHTML = html;
  return element;
}

function lines(html: string): string[] {
  return splitLines(markup(html)).map((line) => {
    const element = document.createElement('div');
    element.append(line);
    return element.innerHTML;
  });
}

it('a comment over two lines is coloured in both', () => {
  expect(lines('a <span class="c">/* one\n<b>two</b> */</span> b\nc')).toEqual([
    'a <span class="c">/* one</span>',
    '<span class="c"><b>two</b> */</span> b',
    'c',
  ]);
});

it('as many lines come out as the text has, empty ones and the last one too', () => {
  const text = 'a\n\n<i>b\n\n\nc</i>\n';
  expect(lines(text)).toHaveLength(text.split('\n').length);
  expect(lines('')).toEqual(['']);
});

it.each([
  ['src/app.PY', 'py'],
  ['web/vite.config.mjs', 'javascript'],
  ['Dockerfile', 'dockerfile'],
  ['a.b/README', ''],
  ['constructor', ''],
  ['x.constructor', 'constructor'],
])('the language of %s is %j', (path, language) => {
  expect(languageOf(path)).toBe(language);
});

it('knows Markdown by its ending', () => {
  expect([isMarkdown('a/Plan.MD'), isMarkdown('a.markdown'), isMarkdown('md')]).toEqual([true, true, false]);
});
