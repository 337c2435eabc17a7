/** A file's text for editing: the byte order mark and the line endings are removed for the field and put back on saving. */

/** The largest file that can be edited in place; typing in a longer one is slow. */
export const MOST_BYTES = 1_000_000;

export interface Opened {
  text: string;
  /** The byte order mark, which the text field drops; it is put back on saving. */
  mark: '' | '\uFEFF';
  lineEnd: '\n' | '\r\n';
}

/** Null when it is not written in UTF-8: saved from a field it would be another text. */
export function opened(content: ArrayBuffer): Opened | null {
  let whole: string;
  try {
    whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return null;
  }
  const mark = whole.startsWith('\uFEFF') ? '\uFEFF' : '';
  const text = whole.slice(mark.length);
  const lineEnd = /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n';
  return { text: text.replaceAll('\r\n', '\n'), mark, lineEnd };
}

export function closed(text: string, { mark, lineEnd }: Omit<Opened, 'text'>): string {
  return mark + (lineEnd === '\n' ? text : text.replaceAll('\n', lineEnd));
}
