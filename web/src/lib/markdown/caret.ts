/** Marks the element that receives the next word, so that the caret is drawn after the last one. */
const HOLDERS = new Set(
  'DIV P UL OL LI BLOCKQUOTE PRE CODE FIGURE TABLE TBODY THEAD TR TD TH H4 H5 H6'.split(' '),
);

export function placeCaret(root: Element, isShown: boolean): void {
  const holder = isShown ? lastHolder(root) : null;
  for (const old of root.querySelectorAll('[data-caret]'))
    if (old !== holder) old.removeAttribute('data-caret');
  holder?.setAttribute('data-caret', '');
}

function lastHolder(root: Element): Element | null {
  let holder: Element | null = null;
  for (let next = root.lastElementChild; next && isHolder(next); next = next.lastElementChild) {
    holder = next;
    if (hasTextAfter(next.lastElementChild)) break;
  }
  return holder;
}

function isHolder(element: Element): boolean {
  return HOLDERS.has(element.tagName) && !element.classList.contains('math');
}

function hasTextAfter(element: Element | null): boolean {
  return element?.nextSibling?.textContent?.trim() ? true : false;
}
