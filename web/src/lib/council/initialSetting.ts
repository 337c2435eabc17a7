/** The settings a new conversation starts with: the project's default, the person's default, the last one used here, or the first available model. */
import type { Defaults, ProjectSettings, SavedTable, Visibility } from '$lib/api/types';
import { ofModel, type Mind } from './minds';
import { firstAvailable, canCome, isDemoAlone, SEATS, type Invitable } from './table';

/** The settings of a round, chosen before the question is asked. */
export interface RoundSettings {
  minds: Mind[];
  mode: string;
  visibility: Visibility;
  chair: Mind | null;
  brief: string;
}

export const PLAIN: RoundSettings = {
  minds: [],
  mode: 'parallel',
  visibility: 'open',
  chair: null,
  brief: '',
};

export interface SettingSources {
  project: Pick<ProjectSettings, 'default_table_id' | 'default_models' | 'default_mode'> | null;
  defaults: Defaults | null;
  tables: SavedTable[];
  /** The settings last sent from this device. */
  last: RoundSettings | null;
  /** The models of the instance, where nobody has chosen others. */
  instance: string[];
}

/**
 * Who cannot come is passed over; where nobody can, the next choice counts. So it does where the demo would answer alone
 * and other models are ready: it was chosen while there was nothing else.
 */
export function initialSetting(habits: SettingSources, invitable: Invitable): RoundSettings {
  for (const setting of inOrder(habits)) {
    const minds = setting.minds.filter((mind) => canCome(mind, invitable)).slice(0, SEATS);
    if (minds.length && !isDemoAlone(minds, invitable)) return { ...setting, minds };
  }
  const mode = habits.defaults?.mode ?? habits.project?.default_mode ?? PLAIN.mode;
  return { ...PLAIN, mode, minds: firstAvailable(invitable) };
}

function inOrder({ project, defaults, tables, last, instance }: SettingSources): RoundSettings[] {
  const table = (id: string | null | undefined) => tables.filter((table) => table.id === id).map(settingOf);
  const own = defaults && {
    ...PLAIN,
    minds: defaults.voices,
    mode: defaults.mode ?? PLAIN.mode,
    visibility: defaults.visibility ?? PLAIN.visibility,
  };
  const chosen = project && {
    ...PLAIN,
    minds: project.default_models.map(ofModel),
    mode: project.default_mode,
  };
  const common = { ...PLAIN, minds: instance.map(ofModel), mode: project?.default_mode ?? PLAIN.mode };
  const rest = [own, last, chosen, common].filter((each) => each !== null);
  return [...table(project?.default_table_id), ...table(defaults?.table_id), ...rest];
}

export function settingOf({ voices, mode, visibility, chair, brief }: SavedTable): RoundSettings {
  return { minds: voices, mode, visibility, chair, brief };
}
