/** The text of a version of a reply, and sentences about its state. */
import type { Draft, Message } from '$lib/api/types';
import { withNames } from './labels';
import type { LaneState, Version } from './lanes';
import { failureText } from './replyErrors';
import { counted, wordCount } from '$lib/format/numbers';

export function contentOf(version: Version): string {
  if (version.kind === 'message') return wordsOf(version.message);
  return version.kind === 'draft' ? wordsOf(version.draft) : '';
}

/** Its text as people read it: a review of nameless answers with their names. */
export function wordsOf({
  content,
  read_replies,
}: Pick<Message | Draft, 'content' | 'read_replies'>): string {
  return withNames(content, read_replies);
}

/** "Reviewed without names: A was The Sage, B was The Strategist." Empty for what was read under names. */
export function labelsOf(version: Version): string {
  if (version.kind === 'queued') return '';
  const read = (version.kind === 'message' ? version.message : version.draft).read_replies;
  const pairs = read
    .filter(({ label }) => label)
    .map(({ label, name }) => `${label.split(' ').at(-1)} was ${name}`);
  return pairs.length ? `Reviewed without names: ${pairs.join(', ')}.` : '';
}

export interface Thoughts {
  text: string;
  isOver: boolean;
  /** Null until it is known. */
  seconds: number | null;
}

/** Nothing when it did not think aloud. A draft with words has stopped thinking; for how long it did comes later. */
export function thinkingOf(version: Version): Thoughts | null {
  if (version.kind === 'message')
    return version.message.thinking && { ...version.message.thinking, isOver: true };
  if (version.kind !== 'draft' || version.draft.thinking === '') return null;
  return { text: version.draft.thinking, isOver: version.draft.content !== '', seconds: null };
}

const STATES: Record<LaneState, string> = {
  queued: 'waiting',
  asked: 'waiting for the first word',
  thinking: 'thinking',
  waiting: 'waiting for the provider',
  writing: 'writing',
  finished: 'finished',
  stopped: 'stopped',
  interrupted: 'interrupted',
  failed: 'failed',
};

/** Returns the state of a version in words: "waiting for the first word", "declined". */
export function stateWords(version: Version): string {
  return hasDeclined(version) ? 'declined' : STATES[version.state];
}

/** A model that declines is not a breakdown. */
function hasDeclined(version: Version): boolean {
  return version.state === 'failed' && failureText(version.message.failure, '').isCalm;
}

/** "The Sage, claude-sonnet-4, finished"; with a provider "GPT-4o 2, OpenRouter, gpt-4o, finished". */
export function describe(name: string, model: string, version: Version, provider: string = ''): string {
  return [name, provider, model.slice(model.indexOf(':') + 1), stateWords(version)]
    .filter(Boolean)
    .join(', ');
}

/** "Connection lost after 49 words." */
export function cutSentence(message: Message, provider: string): string {
  const words = wordCount(message.content);
  const when = words ? `after ${counted(words, 'word')}` : 'before the first word';
  if (message.status === 'stopped') return `Stopped ${when}.`;
  if (message.failure?.code === 'filtered') return `Stopped by the provider’s safety filter ${when}.`;
  const how = message.failure ? failureText(message.failure, provider).title : 'Connection lost';
  return `${how} ${when}.`;
}
