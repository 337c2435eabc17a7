/** Sanitizes markup before it enters the page: an allow-list of elements, attributes, classes and addresses. */
import DOMPurify, { type Config } from 'dompurify';
import type { TrustedTypesWindow } from 'trusted-types/lib';

const ELEMENTS =
  'p br strong em s del h4 h5 h6 blockquote ul ol li hr pre code a table thead tbody tr th td span div figure figcaption'.split(
    ' ',
  );
/** Words; programs run one way. */
const BLOCKS = new Set(['p', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'div']);
const ATTRIBUTES = ['href', 'title', 'target', 'rel', 'class', 'start'];
const CLASSES = new Set([
  'math',
  'cite',
  'display',
  'tbl',
  'code',
  'image',
  'host',
  'task',
  'right',
  'center',
]);

// The one policy under which text may become markup; nothing but the sanitiser holds it.
const policy = (window as unknown as TrustedTypesWindow).trustedTypes?.createPolicy('tertulia', {
  createHTML: (html) => html,
  createScriptURL: () => {
    throw new TypeError('No script is ever loaded by address.');
  },
});

const CONFIG: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: ELEMENTS,
  ALLOWED_ATTR: ATTRIBUTES,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  RETURN_DOM_FRAGMENT: true,
  ...(policy && { TRUSTED_TYPES_POLICY: policy as unknown as Config['TRUSTED_TYPES_POLICY'] }),
};

const purifier = DOMPurify(window);
purifier.addHook('uponSanitizeAttribute', (_, data) => {
  if (data.attrName === 'class') data.attrValue = allowedClasses(data.attrValue);
});
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer');
});

/**
 * Handed over as nodes, not as text: nothing else ever turns markup into a part of the page. Each block runs the way
 * of its own first words, so that two scripts in one reply both read well.
 */
export function sanitize(html: string): DocumentFragment {
  const fragment = purifier.sanitize(html, CONFIG);
  for (const each of fragment.children) if (BLOCKS.has(each.localName)) each.setAttribute('dir', 'auto');
  return fragment;
}

function allowedClasses(value: string): string {
  return value
    .split(/\s+/)
    .filter(
      (name) =>
        CLASSES.has(name) ||
        /^(?:language|hljs)-[\w+#.-]{1,40}$/.test(name) ||
        /^(?:class|function|inherited)_$/.test(name),
    )
    .join(' ');
}
