/** The selected words of a reply, and the position for a button beside them. */

export interface Selected {
  messageId: string;
  text: string;
  x: number;
  y: number;
}

/** Longer than this is no quote but the reply itself. */
const MOST = 2_000;
const BUTTON = 34;
const BUTTON_COARSE = 52;

/** Returns the selected text of a single reply; null when there is none, it is too long, or it spans several replies. */
export function selected(selection: Selection | null, within: HTMLElement): Selected | null {
  if (!selection || selection.isCollapsed || !selection.rangeCount) return null;
  const text = selection.toString().trim();
  if (!text || text.length > MOST) return null;
  const range = selection.getRangeAt(0);
  const [from, to] = [wordsAround(range.startContainer), wordsAround(range.endContainer)];
  const messageId = from?.closest<HTMLElement>('[data-message]')?.dataset.message;
  if (!from || from !== to || !messageId || !within.contains(from)) return null;
  return { messageId, text, ...beside(range, within) };
}

function wordsAround(node: Node): HTMLElement | null {
  return (node instanceof Element ? node : node.parentElement)?.closest<HTMLElement>('.words') ?? null;
}

/** Above the first line, or below the last where there is no room; below also where the system has its own menu. */
function beside(range: Range, within: HTMLElement): { x: number; y: number } {
  const boxes = range.getClientRects();
  const [first, last] = [boxes[0], boxes[boxes.length - 1]];
  if (!first || !last) return { x: 0, y: 0 };
  const isCoarse = matchMedia('(pointer: coarse)').matches;
  const isAbove = !isCoarse && first.top - BUTTON > within.getBoundingClientRect().top;
  const box = isAbove ? first : last;
  const middle = box.left + box.width / 2;
  const x = Math.max(60, Math.min(middle, document.documentElement.clientWidth - 60));
  return { x, y: isAbove ? box.top - BUTTON : box.bottom + (isCoarse ? BUTTON_COARSE - 40 : 6) };
}
