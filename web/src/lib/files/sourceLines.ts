/** Source code in a viewer: its language by the file's name, and highlighted markup cut into lines. */

const BY_NAME: Record<string, string> = { dockerfile: 'dockerfile', containerfile: 'dockerfile' };
const BY_EXTENSION: Record<string, string> = {
  cc: 'cpp',
  cjs: 'javascript',
  hh: 'cpp',
  htm: 'html',
  jsonl: 'json',
  mjs: 'javascript',
  pyi: 'python',
};

/** "src/app.py" → "py": a name the highlighter knows, or one it does not and leaves in one colour. */
export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  if (Object.hasOwn(BY_NAME, name)) return BY_NAME[name]!;
  const extension = name.includes('.') ? name.slice(name.lastIndexOf('.') + 1) : '';
  return Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension]! : extension;
}

export function isMarkdown(path: string): boolean {
  return /\.(md|markdown|mdown)$/i.test(path);
}

/** Splits nodes into a fragment for each line; an element that spans several lines is repeated in each. */
export function splitLines(source: Node): DocumentFragment[] {
  const lines = [document.createDocumentFragment()];
  for (const child of source.childNodes) {
    partsOf(child).forEach((part, n) => {
      if (n > 0) lines.push(document.createDocumentFragment());
      lines.at(-1)!.append(part);
    });
  }
  return lines;
}

function partsOf(node: Node): Node[] {
  if (node instanceof Text) return node.data.split('\n').map((line) => document.createTextNode(line));
  return splitLines(node).map((line) => {
    const copy = node.cloneNode(false) as Element;
    copy.append(line);
    return copy;
  });
}
