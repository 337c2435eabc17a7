/** A message for tests, as the composer hands it to the outbox. */
import { voice } from '$lib/lanes/samples';
import type { NewOutgoing } from './outbox';

export function item(id: string, change: Partial<NewOutgoing> = {}): NewOutgoing {
  return {
    id,
    conversation_id: 'c1',
    project_id: 'p1',
    created_by: 'u1',
    created_at: 0,
    text: `text of ${id}`,
    mode: 'parallel',
    table: [voice(1)],
    visibility: 'open',
    reply_to_id: null,
    attachments: [],
    chair: null,
    brief: '',
    is_blind: false,
    aside: false,
    quotes: [],
    scope: null,
    ...change,
  };
}
