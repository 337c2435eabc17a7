/**
 * Annotations: underlines quoted words in a shown text and adds the number of the note about them.
 * Marks are put around text that is there and taken off again; nothing is parsed and nothing is made from a string.
 */
export interface Annotation {
  number: number;
  seat: number;
  quote: string;
}

/** Marks each quote where it first stands; returns the numbers that were found, and how to take the marks off. */
export function markQuotes(root: HTMLElement, notes: Annotation[]): { found: Set<number>; undo: () => void } {
  const undos: (() => void)[] = [];
  const found = new Set<number>();
  for (const note of notes) {
    const pieces = piecesOf(root, wordsOf(note.quote));
    if (!pieces.length) continue;
    found.add(note.number);
    pieces.forEach((piece, n) => undos.push(wrap(piece, note, n === pieces.length - 1)));
  }
  return { found, undo: () => undos.reverse().forEach((undo) => undo()) };
}

/** As letters alone: Markdown's marks are not shown, and lines break anywhere. */
export function wordsOf(quote: string): string {
  return quote.replace(/[*_`~>#\s]+/g, '').trim();
}

interface Piece {
  node: Text;
  start: number;
  end: number;
}

function piecesOf(root: HTMLElement, wanted: string): Piece[] {
  if (!wanted) return [];
  const letters: { node: Text; at: number }[] = [];
  let text = '';
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    for (let at = 0; at < node.data.length; at++) {
      if (/[*_`~>#\s]/.test(node.data[at]!)) continue;
      letters.push({ node, at });
      text += node.data[at];
    }
  }
  const begin = text.indexOf(wanted);
  if (begin < 0) return [];
  const within = letters.slice(begin, begin + wanted.length);
  const pieces: Piece[] = [];
  for (const { node, at } of within) {
    const last = pieces.at(-1);
    if (last?.node === node) last.end = at + 1;
    else pieces.push({ node, start: at, end: at + 1 });
  }
  // From one node to the next the space between two words belongs to the quote as well.
  pieces.forEach((piece, n) => {
    if (n > 0) piece.start = 0;
    if (n < pieces.length - 1) piece.end = piece.node.data.length;
  });
  return pieces;
}

function wrap({ node, start, end }: Piece, note: Annotation, isLast: boolean): () => void {
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, end);
  const mark = document.createElement('mark');
  mark.className = 'noted';
  mark.dataset.note = String(note.number);
  mark.dataset.seat = String(note.seat);
  if (isLast) mark.dataset.n = String(note.number);
  range.surroundContents(mark);
  return () => {
    const parent = mark.parentNode;
    if (!parent) return;
    while (mark.firstChild) parent.insertBefore(mark.firstChild, mark);
    mark.remove();
    parent.normalize();
  };
}
