/**
 * Formulas drawn by KaTeX, which is fetched when the first one is shown.
 *
 * KaTeX's markup carries style attributes, which the page's policy (style-src 'self') forbids; MathML alone
 * would need a mathematics font few machines have. So its tree is turned into nodes by the DOM, where styles are
 * set as properties, which the policy allows. Nothing passes as text, and what is not on the list below is not shown.
 */
const LONGEST = 3_000;
const DEEPEST = 60;
const LONGEST_MS = 500;
const OPTIONS = { throwOnError: true, trust: false, strict: false, maxExpand: 300, maxSize: 40 } as const;
const ELEMENTS = new Set(
  'span svg path line math semantics annotation mrow mi mo mn ms mtext mspace msup msub msubsup mfrac msqrt mroot mtable mtr mtd mlabeledtr munder mover munderover mpadded mphantom mstyle menclose merror mglyph'.split(
    ' ',
  ),
);
// Commands that would link, fetch or name things: KaTeX refuses them, and their source says more than its refusal.
const REFUSED = /\\(?:href|url|includegraphics|html(?:Data|Class|Id|Style))\b/;
const LEADS_AWAY = /^(?:on|src|href|xlink|id$|name$)/i;

/** The drawn formula, or null when it is to be shown as typed: it does not read, is too long or took too long. */
export async function draw(source: string, isDisplay: boolean): Promise<Element | null> {
  if (source.length > LONGEST || depth(source) > DEEPEST) return null;
  if (REFUSED.test(source) || tooSlow.has(source)) return null;
  const library = await katex().catch(() => null); // no connection: as typed
  const began = performance.now();
  try {
    if (library === null) return null;
    const node = nodeOf(library.__renderToDomTree(source, { ...OPTIONS, displayMode: isDisplay }));
    return isHarmless(node) ? node : null;
  } catch {
    return null; // not a formula, or deeper than the stack
  } finally {
    if (performance.now() - began > LONGEST_MS) tooSlow.add(source);
  }
}

const tooSlow = new Set<string>();

function depth(source: string): number {
  let [now, most] = [0, 0];
  for (const sign of source) {
    if (sign === '{') most = Math.max(most, ++now);
    else if (sign === '}') now--;
  }
  return most;
}

interface Branch {
  children?: Branch[];
  attributes?: Record<string, string>;
  toNode(): Node;
}

async function katex(): Promise<{ __renderToDomTree(source: string, options: object): Branch }> {
  const [library] = await Promise.all([import('katex'), import('katex/dist/katex.min.css')]);
  return library as never;
}

/** Lengths of stretchy signs come as style attributes; they wait under another name until they can be set. */
function nodeOf(tree: Branch): Element {
  const waiting: Branch[] = [tree];
  for (let branch = waiting.pop(); branch; branch = waiting.pop()) {
    const style = branch.attributes?.style;
    if (style !== undefined) {
      delete branch.attributes!.style;
      branch.attributes!['data-style'] = style;
    }
    waiting.push(...(branch.children ?? []));
  }
  const node = tree.toNode() as HTMLElement;
  for (const element of node.querySelectorAll<HTMLElement>('[data-style]')) {
    element.style.cssText = element.dataset.style!;
    element.removeAttribute('data-style');
  }
  return node;
}

function isHarmless(node: Element): boolean {
  return [node, ...node.querySelectorAll('*')].every(
    (element) =>
      ELEMENTS.has(element.localName) && !element.getAttributeNames().some((name) => LEADS_AWAY.test(name)),
  );
}
