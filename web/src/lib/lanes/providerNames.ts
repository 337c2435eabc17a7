/** Provider names that tell the models of a round apart where two providers have a model of the same name. */
import type { ModelView, Voice } from '$lib/api/types';

type Named = Pick<ModelView, 'key' | 'display_name' | 'provider_name'>;
type ModelVoice = Pick<Voice, 'name' | 'model' | 'persona_id'>;

/** By the key of the model; empty where no name repeats. A persona and a hidden model are known by other names. */
export function providersOfRepeatedNames(voices: ModelVoice[], models: Named[]): Map<string, string> {
  const byName = new Map<string, Map<string, string>>();
  for (const voice of voices.filter(isModel)) {
    const model = models.find(({ key }) => key === voice.model);
    const name = model?.display_name ?? voice.name;
    const providers = byName.get(name) ?? new Map<string, string>();
    byName.set(name, providers.set(voice.model, model?.provider_name ?? providerIn(voice.model)));
  }
  return new Map([...byName.values()].filter(hasSeveral).flatMap((providers) => [...providers]));
}

export function isModel({ model, persona_id }: Pick<Voice, 'model' | 'persona_id'>): boolean {
  return model !== '' && persona_id === null;
}

function hasSeveral(providers: Map<string, string>): boolean {
  return new Set(providers.values()).size > 1;
}

/** "openai:gpt-4o" → "openai" */
function providerIn(key: string): string {
  return key.slice(0, key.indexOf(':'));
}
