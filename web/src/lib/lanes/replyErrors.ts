/** Error texts for failed replies: title, short reason, and whether a retry can help. */
import type { Failure } from '$lib/api/types';

export interface FailureText {
  title: string;
  /** A few words, for a place where the whole sentence is too long. */
  short: string;
  sentence: string;
  /** The provider's own message. */
  detail: string | null;
  /** The time at which the provider can be asked again, if it named a time too far off to wait for. */
  retryAt: number | null;
  /** A model that declines is not a breakdown. */
  isCalm: boolean;
  /** The same request would end the same way. */
  isFinal: boolean;
}

interface Kind {
  /** Left out where the server's first sentence says it better: the kind has many reasons. */
  title?: (provider: string) => string;
  short: string;
  isCalm?: true;
  isFinal?: true;
}

const KINDS: Record<string, Kind> = {
  rate_limited: { short: 'limit reached' },
  unavailable: { short: 'no answer' },
  auth: { short: 'no access' },
  timeout_first_byte: { title: (provider) => `${provider} did not answer`, short: 'no answer in time' },
  timeout_idle: { title: (provider) => `${provider} stopped sending`, short: 'no answer in time' },
  timeout_total: { title: (provider) => `${provider} took too long`, short: 'no answer in time' },
  cut: { title: () => 'Connection lost', short: 'connection lost' },
  malformed: {
    title: (provider) => `${provider} sent an unreadable answer`,
    short: 'an unreadable answer',
  },
  too_large: { title: (provider) => `${provider} sent too long an answer`, short: 'too long an answer' },
  context_length: {
    title: () => 'This is too long for the model',
    short: 'too long for the model',
    isFinal: true,
  },
  filtered: { title: () => 'This model declined', short: 'the model declined', isCalm: true, isFinal: true },
  length: { title: () => 'The reply reached its length limit', short: 'length limit' },
  empty: { title: () => 'The model wrote no reply', short: 'no reply' },
  unknown_model: { title: () => 'Unknown model', short: 'unknown model', isFinal: true },
  restarted: { title: () => 'The server was restarted', short: 'the server was restarted' },
  internal: { title: () => 'Server error', short: 'server error' },
};

const OTHER: Kind = { title: () => 'No reply', short: 'no reply' };

export function failureText(failure: Failure | null, provider: string): FailureText {
  const kind = (failure && Object.hasOwn(KINDS, failure.code) && KINDS[failure.code]) || OTHER;
  const message = failure?.message || 'The others are not affected. Try again, or ask another model.';
  const title = kind.title?.(provider || 'The provider') ?? firstOf(message);
  const retryAt = failure?.retry_at ?? null;
  return {
    title,
    short: kind.short,
    sentence: after(title, retryAt ? message.replace(MOMENT, '') : message),
    detail: failure?.detail ?? null,
    retryAt,
    isCalm: kind.isCalm ?? false,
    isFinal: kind.isFinal ?? false,
  };
}

/** Turned away before anything was run; of other failures nobody here knows what the provider charges. */
const TURNED_AWAY = new Set(['rate_limited', 'auth', 'unknown_model']);

export function isUncharged(failure: Failure | null): boolean {
  if (failure === null) return false;
  return TURNED_AWAY.has(failure.code) || failure.message.endsWith('Nothing was charged.');
}

/** The server tells it for every reader; a person reads it by the clock at hand. */
const MOMENT = / It can be asked again at [^.]*\.$/;

function firstOf(message: string): string {
  return message.split(/\.(?:\s+(?=\p{Lu})|$)/u)[0]!;
}

/** The server's sentence stands by itself; under a title that says the same it begins with what is new. */
function after(title: string, sentence: string): string {
  return sentence.startsWith(`${title}.`) ? sentence.slice(title.length + 1).trimStart() : sentence;
}
