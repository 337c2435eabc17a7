/** The settings with which a conversation continues: those of its last question. */
import type { Conversation } from '$lib/api/types';
import { wanted, type Outgoing } from '$lib/composer/outbox';
import { outboxStore } from '$lib/composer/outboxStore.svelte';
import type { RoundSettings } from '$lib/council/initialSetting';
import { store } from '$lib/live/store.svelte';
import { pendingTableFor } from './pendingTables';

/** The last question to the whole table that waits to be sent, else the conversation, which keeps the settings of the last one sent. */
export function lastAsked(id: string): Outgoing | Conversation | undefined {
  return lastOutgoing(id) ?? store.conversation(id);
}

export function lastSettings(id: string): RoundSettings {
  const outgoing = lastOutgoing(id);
  const last = lastAsked(id);
  // The first question went to one voice alone: the table that was set waits for the second.
  const pending = pendingTableFor(id);
  if (!outgoing && pending && (store.conversation(id)?.round_count ?? 0) < 2) return pending;
  const briefed = store.turnsOf(id).findLast((turn) => turn.purpose === 'ask' && turn.brief !== '');
  return {
    minds: last?.table.map(wanted) ?? [],
    mode: last?.mode ?? 'parallel',
    visibility: last?.visibility ?? 'open',
    chair: last?.chair ? wanted(last.chair) : null,
    brief: outgoing?.brief ?? briefed?.brief ?? '',
  };
}

function lastOutgoing(id: string): Outgoing | undefined {
  return outboxStore.of(id, store.me?.id).findLast((item) => !item.aside);
}
