/** What the tiers of models are called. */
import type { ModelView } from '../api/types';

export const TIERS: Record<ModelView['tier'], string> = {
  smart: 'smart',
  balanced: 'balanced',
  fast: 'fast',
  cheap: 'small',
};
