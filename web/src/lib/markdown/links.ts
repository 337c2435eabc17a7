/** Link targets: which addresses a link may lead to, and whether its words name another host. */

const ALLOWED = new Set(['http:', 'https:', 'mailto:']);
const LOOKS_LIKE_A_HOST = /(?:^|[\s/@(])((?:[\p{L}\p{N}-]+\.)+\p{L}{2,})(?=$|[\s/:?#),])/iu;

/** The address when it is one a person may be led to; a relative address leads into this app and is none. */
export function destination(address: string): URL | null {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url && ALLOWED.has(url.protocol) ? url : null;
}

/** The host to show beside a link whose words name another one, hide one behind a sign-in name, or use look-alikes. */
export function hostToShow(url: URL, words: string): string | null {
  if (url.protocol === 'mailto:') return null;
  const isDisguised = url.username !== '' || url.hostname.includes('xn--');
  const named = LOOKS_LIKE_A_HOST.exec(words)?.[1]?.toLowerCase();
  return isDisguised || (named !== undefined && !isSameHost(named, url.hostname)) ? url.host : null;
}

function isSameHost(named: string, actual: string): boolean {
  return bare(named) === bare(actual);
}

function bare(host: string): string {
  return host.replace(/^www\./, '');
}
