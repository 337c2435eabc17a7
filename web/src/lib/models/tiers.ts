/** What the tiers of models are called. */
import type { Model } from '../api/types';

export const TIERS: Record<Model['tier'], string> = {
  smart: 'smart',
  balanced: 'balanced',
  fast: 'fast',
  cheap: 'small',
};
