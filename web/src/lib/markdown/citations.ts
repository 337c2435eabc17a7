/**
 * Citations in a model's text: [docs/plan.md:12-40] for lines of a file, [round 7] for what was said.
 *
 * The reader of Markdown finds them outside of programs and links, and leaves them as they were written. Those that
 * name something known here become buttons afterwards, on the page: while text comes in, while files come and go.
 */
import type { MarkdownIt } from 'markdown-it';

export type Mark =
  { kind: 'file'; path: string; from: number; to: number } | { kind: 'round'; number: number };

/** The target of a citation mark. */
export interface Cited {
  open: () => void;
  /** Stands beside the page right now. */
  isOpen: boolean;
}

export interface Citations {
  /** Null when the mark names nothing that is known. */
  find(mark: Mark): Cited | null;
}

const MARK = /\[(?:round (\d{1,6})|([^[\]\n]{1,400}?):(\d{1,7})(?:[-–](\d{1,7}))?)\]/iy;
const LONGEST = 34;

/** A rule of its own, before links: a path with underscores is no emphasis. */
export function citations(md: MarkdownIt): void {
  md.inline.ruler.before('link', 'citation', (state, silent) => {
    // Silent is the search for the end of a link: what stands in one is not taken for a link of its own.
    if (silent || state.linkLevel > 0 || state.src[state.pos] !== '[') return false;
    MARK.lastIndex = state.pos;
    const mark = MARK.exec(state.src)?.[0];
    const end = state.pos + (mark?.length ?? 0);
    // A mark followed by an address is a link; the rule for links takes it.
    if (!mark || end > state.posMax || '(['.includes(state.src[end] ?? ' ')) return false;
    state.push('citation', 'span', 0).content = mark;
    state.pos = end;
    return true;
  });
  md.renderer.rules.citation = (tokens, index) =>
    `<span class="cite">${md.utils.escapeHtml(tokens[index]!.content)}</span>`;
}

export function markIn(text: string): Mark | null {
  MARK.lastIndex = 0;
  const found = MARK.exec(text);
  if (!found || found[0] !== text) return null;
  const [, round, path = '', from, to = from] = found;
  if (round) return { kind: 'round', number: Number(round) };
  const [first, last] = [Number(from), Number(to)];
  return { kind: 'file', path: path.replace(/^\.?\//, ''), from: first, to: Math.max(first, last) };
}

const written = new WeakMap<Element, string>();

/** Makes a mark a button when it leads somewhere, else words again; says whether it is a button. */
export function dress(element: Element, known: Citations): boolean {
  const text = written.get(element) ?? element.textContent;
  const mark = markIn(text);
  const cited = mark && known.find(mark);
  if (!mark || !cited) {
    if (written.delete(element)) element.textContent = text;
    return false;
  }
  const button = buttonIn(element) ?? element.ownerDocument.createElement('button');
  if (!written.has(element)) {
    written.set(element, text);
    button.type = 'button';
    button.append(...labelOf(mark, element.ownerDocument));
    button.title = titleOf(mark);
    element.replaceChildren(button);
  }
  button.onclick = cited.open;
  button.classList.toggle('on', cited.isOpen);
  return true;
}

function buttonIn(element: Element): HTMLButtonElement | null {
  return written.has(element) ? element.querySelector('button') : null;
}

function labelOf(mark: Mark, document: Document): (string | Element)[] {
  if (mark.kind === 'round') return [`round ${mark.number}`];
  const lines = document.createElement('b');
  lines.textContent = `:${mark.from === mark.to ? mark.from : `${mark.from}-${mark.to}`}`;
  return [shortened(mark.path), lines];
}

function titleOf(mark: Mark): string {
  if (mark.kind === 'round') return `Go to round ${mark.number}`;
  const lines = mark.from === mark.to ? `line ${mark.from}` : `lines ${mark.from} to ${mark.to}`;
  return `Open ${mark.path} at ${lines}`;
}

/** The middle goes: its beginning says where it lies, its end what it is. */
export function shortened(path: string): string {
  if (path.length <= LONGEST) return path;
  const head = Math.floor(LONGEST / 3);
  return `${path.slice(0, head)}…${path.slice(path.length - (LONGEST - head - 1))}`;
}
