import type { IconComponent } from './icon';

export type MenuItem =
  | 'separator'
  | {
      label: string;
      run: () => void;
      icon?: IconComponent;
      /** The key that does the same, shown on the right. */
      keys?: string;
      /** A few words on the right. */
      hint?: string;
      danger?: boolean;
      /** Set for a choice among several: a check stands beside the one that holds. */
      checked?: boolean;
      disabled?: boolean;
    };
