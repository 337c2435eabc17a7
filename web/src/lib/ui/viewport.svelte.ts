/** How much room there is: phone, narrow (the sidebar is a drawer), or all of it. */
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
