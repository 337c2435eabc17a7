/** Every address of the house, in one place. */

export type Panel = 'models' | 'appearance' | 'keyboard' | 'sessions';

export const routes = {
  home: '/',
  newConversation: '/new',
  conversation: (id: string) => `/c/${id}`,
  project: (id: string) => `/p/${id}`,
  search: '/search',
  signIn: '/sign-in',
  setup: '/set-up',
  settings: (panel: Panel) => `/settings/${panel}`,
} as const;
