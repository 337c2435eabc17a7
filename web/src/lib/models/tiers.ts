/** The names of the tiers of models. */
import type { ModelView } from '../api/types';

export const TIERS: Record<ModelView['tier'], string> = {
  smart: 'smart',
  balanced: 'balanced',
  fast: 'fast',
  cheap: 'small',
};
