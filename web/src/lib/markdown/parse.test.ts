import { describe, expect, it } from 'vitest';
import { NOTHING, parse, type Parsed } from './parse';

const htmlOf = (text: string) =>
  parse(text)
    .blocks.map((block) => (block.kind === 'html' ? block.html : block.source))
    .join('');

const SAMPLE = `# A plan

Keep **sessions** as the source of truth, see [the notes][1] and https://example.org/a_b.

1. First, with \`code\`
2. Second

   more of the second

   \`\`\`py
   print("nested")
   \`\`\`
3. Third

> A quote
> - with a list

\`\`\`ts gateway/issue.ts
export const a = 1;

const b = "$5";
\`\`\`

| When | Then |
|:-----|-----:|
| a    | $x^2$ |
| b | $5 and $10 |

The sum:
$$
\\sum_{i=1}^n i
$$
and \\(a+b\\), also \\[ c \\] inside. It costs $5, or $10.

Heading below
=============

$$ never closed

- [ ] todo
- [x] done

~~~
open to the end
[1]: not-a-definition

[1]: https://example.org/notes "Notes"
~~~

[1]: https://example.org/notes "Notes"
`;

describe('parsing while text arrives', () => {
  it('ends with the same blocks however the text was cut', () => {
    const whole = parse(SAMPLE).blocks;
    for (const step of [1, 2, 3, 7, 31, 200]) {
      let parsed: Parsed = NOTHING;
      for (let end = step; end < SAMPLE.length; end += step) parsed = parse(SAMPLE.slice(0, end), parsed);
      expect(parse(SAMPLE, parsed).blocks, `in steps of ${step}`).toEqual(whole);
    }
  });

  it('ends with the same blocks for texts put together at random', () => {
    const random = seeded(42);
    const parts = SAMPLE.split(/(?<=\n)/).concat([
      '\n',
      '   \n',
      '\r\n',
      '- x\n',
      '$$\n',
      '> ',
      '```\n',
      '|a|b|\n',
      '[x]: http://e.org\n',
      '[x] ',
      '\t',
      '\\[',
      '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
    ]);
    for (let round = 0; round < 120; round++) {
      const text = Array.from({ length: 25 }, () => parts[Math.floor(random() * parts.length)]).join('');
      let parsed: Parsed = NOTHING;
      for (let end = 0; end < text.length; end += 1 + Math.floor(random() * 9))
        parsed = parse(text.slice(0, end), parsed);
      expect(parse(text, parsed).blocks).toEqual(parse(text).blocks);
    }
  });

  it('keeps finished blocks as the very same objects', () => {
    const first = parse('One.\n\nTwo.\n\nThr');
    const second = parse('One.\n\nTwo.\n\nThree.\n\nFour', first);
    expect(second.blocks[0]).toBe(first.blocks[0]);
    expect(second.blocks[1]).toBe(first.blocks[1]);
    expect(second.blocks).toHaveLength(4);
  });

  it('writes only blocks with brackets again when a definition arrives late', () => {
    const first = parse('Plain.\n\nSee [it].\n\n');
    const second = parse('Plain.\n\nSee [it].\n\n[it]: https://example.org', first);
    expect(second.blocks[0]).toBe(first.blocks[0]);
    expect(second.blocks[1]).toMatchObject({ html: expect.stringContaining('href="https://example.org') });
  });

  it('says whether a program is closed', () => {
    const open = parse('```py\nprint(1)\n').blocks[0];
    const closed = parse('```py\nprint(1)\n```').blocks[0];
    expect(open).toMatchObject({ kind: 'code', language: 'py', text: 'print(1)', isClosed: false });
    expect(closed).toMatchObject({ isClosed: true });
    expect(parse('````\n```\n').blocks[0]).toMatchObject({ isClosed: false, text: '```' });
  });

  it('captions a program with its file when it names one', () => {
    expect(parse('```ts gateway/issue.ts\n```').blocks[0]).toMatchObject({
      language: 'ts',
      label: 'gateway/issue.ts',
    });
    expect(parse('```python title="a.py"\n```').blocks[0]).toMatchObject({
      language: 'python',
      label: 'a.py',
    });
    expect(parse('```js:src/a.js\n```').blocks[0]).toMatchObject({ language: 'js', label: 'src/a.js' });
  });
});

describe('formulas', () => {
  it.each([
    ['$x^2$', '<span class="math">x^2</span>'],
    ['so \\(a_1\\) holds', '<span class="math">a_1</span>'],
    ['a $$b$$ c', '<span class="math display">b</span>'],
    ['$$\na\n\\\\\nb\n$$', '<div class="math display">a\n\\\\\nb</div>'],
    ['\\[\nx\n\\]', '<div class="math display">x</div>'],
    ['text:\n$$x$$', '<div class="math display">x</div>'],
    ['- item\n  $$\n  y\n  $$', '<div class="math display">y</div>'],
    ['$2x + 3$', '<span class="math">2x + 3</span>'],
  ])('are found in %j', (text, html) => expect(htmlOf(text)).toContain(html));

  it.each([
    '$5 and $10',
    'from $5-$10 each',
    '$5, or 5$ maybe',
    'set $HOME and $PATH',
    '$HOME/$PATH',
    'a $ b $ c',
    '`$x$`',
    '\\$x\\$',
    'US$5 and US$6',
  ])('are not seen in %j', (text) => expect(htmlOf(text)).not.toContain('math'));

  it('leaves a stray opening to its own paragraph', () => {
    expect(htmlOf('$$ stray\n\n- a list')).toContain('<li>');
  });
});

describe('links', () => {
  it('open apart and tell their address', () => {
    const html = htmlOf('[here](https://example.org/x)');
    expect(html).toContain('target="_blank" rel="noopener noreferrer" title="https://example.org/x"');
    expect(html).not.toContain('class="host"');
  });

  it.each([
    ['[bank.example](https://evil.example/login)', 'evil.example'],
    ['[https://bank.example/a](https://evil.example/)', 'evil.example'],
    ['[x](https://bank.example@evil.example/)', 'evil.example'],
    ['[paypal](https://pаypal.example/)', 'xn--'],
  ])('show the true host of %j', (text, host) =>
    expect(htmlOf(text)).toMatch(new RegExp(`class="host">[^<]*${host}`)),
  );

  it.each([
    '[www.example.org](https://example.org)',
    '[https://example.org/a?b=c](https://example.org/z)',
    '[read v2.0 here](https://example.org)',
  ])('need no host beside %j', (text) => expect(htmlOf(text)).not.toContain('class="host"'));
});

describe('deceptive characters', () => {
  it('are gone, in prose and in programs', () => {
    const text = 'safe\u202Etxt.exe \u2066a\u2069 tag\u{E0041}\u{E0042}\n\n```\nif\u202E\n```';
    expect(JSON.stringify(parse(text).blocks)).not.toMatch(
      /[\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/u,
    );
  });

  it('leave flags, families, and joiners of Persian and Indic scripts whole', () => {
    for (const whole of ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', '👩‍👩‍👧', 'می‌خواهم', 'क्‍ष']) expect(htmlOf(whole)).toContain(whole);
  });
});

it('tables align by class and tasks show their boxes', () => {
  expect(htmlOf('|a|b|\n|:-:|-:|\n|1|2|')).toMatch(
    /<div class="tbl"><table>.*<th class="center">a<\/th>\n<th class="right">/s,
  );
  expect(htmlOf('- [ ] a\n- [x] b')).toMatch(/<li class="task">☐ a.*<li class="task">☑ b/s);
});

it('headings begin below the name of the speaker', () => {
  expect(htmlOf('# One\n\n## Two\n\n#### Four')).toMatch(/<h4>One<\/h4>.*<h5>Two<\/h5>.*<h6>Four<\/h6>/s);
});

describe('rendering cost', () => {
  const hostile: [string, string][] = [
    ['nested quotes', '>'.repeat(50_000) + ' x'],
    ['nested quotes on lines', Array.from({ length: 700 }, (_, n) => '> '.repeat(n) + 'x').join('\n')],
    ['nested lists', '- '.repeat(50_000) + 'x'],
    [
      'indented lists',
      Array.from({ length: 1_500 }, (_, n) => ' '.repeat(n * 2) + '- x')
        .join('\n')
        .slice(0, 1_000_000),
    ],
    ['brackets', '['.repeat(50_000)],
    ['image brackets', '!['.repeat(50_000)],
    ['links', '[a]('.repeat(50_000)],
    ['emphasis', '*a_ '.repeat(50_000)],
    ['asterisks', '*'.repeat(1_000_000)],
    ['asterisks with text', '*a **a '.repeat(8_000)],
    ['backticks', Array.from({ length: 2_000 }, (_, n) => '`'.repeat(n % 300) + 'a').join(' ')],
    ['a long table', '|a|b|\n|-|-|\n' + '|1|2|\n'.repeat(10_000)],
    ['a wide table', '|' + 'a|'.repeat(20_000) + '\n|' + '-|'.repeat(20_000) + '\n' + '|a\n'.repeat(200)],
    ['dollars', '$a '.repeat(50_000)],
    ['doubled dollars', '$$\n'.repeat(50_000)],
    ['parens', '\\('.repeat(50_000)],
    ['definitions', Array.from({ length: 20_000 }, (_, n) => `[${n}]: http://e.org/${n}`).join('\n')],
    ['entities', '&amp;'.repeat(50_000)],
    ['angle brackets', '<'.repeat(60_000)],
    ['addresses', 'http://a.b/c '.repeat(20_000)],
    ['blank lines', '\n'.repeat(500_000)],
    ['many paragraphs', 'a\n\n'.repeat(100_000)],
    ['five megabytes', 'word '.repeat(1_000_000)],
  ];

  it.each(hostile)('comes to an end for %s, where a square of its length would not', (_, text) => {
    expect(parse(text)).toBeDefined();
  });
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
