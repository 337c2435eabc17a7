/** Why a reply did not come, in words: a title, a short reason, and whether trying again can help. */
import type { Failure } from '$lib/api/types';

export interface Fault {
  title: string;
  /** A few words, for a place where the whole sentence is too long. */
  short: string;
  sentence: string;
  /** What the provider itself said. */
  detail: string | null;
  /** A model that declines is not a breakdown. */
  isCalm: boolean;
  /** The same request would end the same way. */
  isFinal: boolean;
}

interface Kind {
  title: (provider: string) => string;
  short: string;
  isCalm?: true;
  isFinal?: true;
}

const KINDS: Record<string, Kind> = {
  rate_limited: { title: (provider) => `${provider} asked us to slow down`, short: 'too many requests' },
  unavailable: { title: (provider) => `${provider} cannot be reached`, short: 'no connection' },
  auth: { title: (provider) => `${provider} refused the key`, short: 'the key was refused' },
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
  length: { title: () => 'The reply reached this model’s limit', short: 'the model’s limit' },
  empty: { title: () => 'The model wrote no reply', short: 'no reply' },
  unknown_model: { title: () => 'Unknown model', short: 'unknown model', isFinal: true },
  restarted: { title: () => 'The server was restarted', short: 'the server was restarted' },
  internal: { title: () => 'Server error', short: 'server error' },
};

const OTHER: Kind = { title: () => 'No reply', short: 'no reply' };

export function faultOf(failure: Failure | null, provider: string): Fault {
  const kind = (failure && Object.hasOwn(KINDS, failure.code) && KINDS[failure.code]) || OTHER;
  const title = kind.title(provider || 'The provider');
  return {
    title,
    short: kind.short,
    sentence: after(
      title,
      failure?.message ?? 'The others are not affected. Try again, or ask another model.',
    ),
    detail: failure?.detail ?? null,
    isCalm: kind.isCalm ?? false,
    isFinal: kind.isFinal ?? false,
  };
}

/** The server's sentence stands by itself; under a title that says the same it begins with what is new. */
function after(title: string, sentence: string): string {
  return sentence.startsWith(`${title}. `) ? sentence.slice(title.length + 2) : sentence;
}
