/** Whether the list of projects is open, and whether a new one is being named. */
let isOpen = $state(false);
let isNaming = $state(false);

export const switcher = {
  get isOpen() {
    return isOpen;
  },
  set isOpen(open: boolean) {
    isOpen = open;
  },
  get isNaming() {
    return isNaming;
  },
  set isNaming(naming: boolean) {
    isNaming = naming;
  },
};
