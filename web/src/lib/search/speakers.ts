/** The author of a hit, with the seat if it is known. */
import type { Conversation, Hit, Message, ModelView } from '$lib/api/types';

export interface Speaker {
  name: string;
  /** The seat; null for a person, and for a voice whose table is not known here. */
  seat: number | null;
  isPerson: boolean;
}

export interface Known {
  message: Message | undefined;
  conversation: Conversation | undefined;
  models: ModelView[];
  nameOf: (userId: string) => string | undefined;
}

const AGENT = 'agent:';

export function speakerOf(hit: Hit, { message, conversation, models, nameOf }: Known): Speaker {
  const speaker = hit.location.speaker ?? '';
  if (!speaker.startsWith(AGENT)) {
    const name = (message && nameOf(message.created_by)) ?? nameIn(hit.heading);
    return { name: name || 'A question', seat: null, isPerson: true };
  }
  const voice = message?.voice ?? conversation?.table.find((each) => speaksAs(each.model) === speaker);
  const model = models.find((model) => speaksAs(model.key) === speaker);
  return {
    name:
      voice?.name || nameIn(hit.heading) || model?.display_name || speaker.slice(AGENT.length) || 'A model',
    seat: voice?.seat ?? null,
    isPerson: false,
  };
}

/** "The Sage, 16 November 2026" was said by The Sage. */
function nameIn(heading: string): string {
  return heading.slice(0, Math.max(0, heading.lastIndexOf(', ')));
}

/** "openai:gpt-4o" speaks as "agent:gpt-4o". */
export function speaksAs(key: string): string {
  return AGENT + key.slice(key.indexOf(':') + 1);
}
