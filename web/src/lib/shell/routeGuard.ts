/** Route guard: which pages need a sign-in, and the address to return to afterwards. */
import { routes } from '../routes';

type Access = 'starting' | 'set_up' | 'out' | 'in' | 'unreachable';

/** Returns the place to which a person must go first; null when they are in the right place. */
export function redirectFor(access: Access, path: string): 'sign-in' | 'set-up' | 'in' | null {
  if (access === 'out') return path === routes.signIn ? null : 'sign-in';
  if (access === 'set_up') return path === routes.setup ? null : 'set-up';
  // Set-up goes on inside, with the first table.
  if (access === 'in') return path === routes.signIn ? 'in' : null;
  return null;
}

/** The page to come back to, as a query; never one on another server. */
export function afterSignIn(from: URL): string {
  const isHouse =
    from.pathname !== routes.signIn &&
    from.pathname !== routes.setup &&
    from.pathname !== '/' &&
    from.pathname !== routes.newConversation;
  return isHouse ? `?next=${encodeURIComponent(from.pathname + from.search)}` : '';
}

export function safeNext(next: string | null): string {
  return next?.startsWith('/') && !next.startsWith('//') && !next.includes('\\') ? next : routes.home;
}
