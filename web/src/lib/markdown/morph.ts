/**
 * Makes an element look like new content while touching as little of it as possible, so that a selection, a
 * scrolled table or a drawn formula survives the next words.
 *
 * `origins` knows elements that were worked on after they arrived (a formula drawn, a program given its buttons)
 * by the markup they came as: the same markup again leaves them alone.
 */
export type Origins = WeakMap<Element, string>;

export function morph(target: ParentNode & Node, source: ParentNode & Node, origins: Origins): void {
  let old = target.firstChild;
  let fresh = source.firstChild;
  while (fresh) {
    const nextFresh = fresh.nextSibling;
    const nextOld: ChildNode | null = old?.nextSibling ?? null;
    if (!old) target.appendChild(fresh);
    else if (!isSame(old, fresh, origins)) become(old, fresh, origins);
    old = nextOld;
    fresh = nextFresh;
  }
  while (old) {
    const next = old.nextSibling;
    old.remove();
    old = next;
  }
}

function isSame(old: ChildNode, fresh: ChildNode, origins: Origins): boolean {
  const origin = old instanceof Element ? origins.get(old) : undefined;
  return origin === undefined
    ? old.isEqualNode(fresh)
    : fresh instanceof Element && fresh.outerHTML === origin;
}

function become(old: ChildNode, fresh: ChildNode, origins: Origins): void {
  if (old instanceof Text && fresh instanceof Text) write(old, fresh.data);
  else if (old instanceof Element && fresh instanceof Element && isAlike(old, fresh, origins)) {
    takeAttributes(old, fresh);
    morph(old, fresh, origins);
  } else old.replaceWith(fresh);
}

/** Adding to a text node keeps a selection inside it; setting it anew would not. */
function write(text: Text, data: string): void {
  if (data.startsWith(text.data)) text.appendData(data.slice(text.data.length));
  else text.data = data;
}

function isAlike(old: Element, fresh: Element, origins: Origins): boolean {
  return old.tagName === fresh.tagName && !origins.has(old);
}

function takeAttributes(old: Element, fresh: Element): void {
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const name of fresh.getAttributeNames()) old.setAttribute(name, fresh.getAttribute(name)!);
}
