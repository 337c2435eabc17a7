/** The size of the window: phone, narrow (the sidebar is a drawer), wide. */
import { MediaQuery } from 'svelte/reactivity';

const phone = new MediaQuery('max-width: 599px');
const narrow = new MediaQuery('max-width: 1180px');
const wide = new MediaQuery('min-width: 1500px');

export const viewport = {
  get isPhone() {
    return phone.current;
  },
  get isNarrow() {
    return narrow.current;
  },
  get isWide() {
    return wide.current;
  },
};
