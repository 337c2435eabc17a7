/** Every address of the app, in one place. */

export type Panel = 'models' | 'personas' | 'appearance' | 'keyboard' | 'sessions';

export const routes = {
  home: '/',
  newConversation: '/new',
  conversation: (id: string) => `/c/${id}`,
  round: (id: string, number: number) => `/c/${id}#round-${number}`,
  /** A single reply of the conversation over the whole width. */
  alone: (id: string, round: number, messageId: string) => `/c/${id}?alone=${round}/${messageId}`,
  map: (id: string) => `/c/${id}/map`,
  compare: (id: string, other: string) => `/c/${id}/compare/${other}`,
  project: (id: string) => `/p/${id}`,
  search: '/search',
  signIn: '/sign-in',
  setup: '/set-up',
  settings: (panel: Panel) => `/settings/${panel}`,
} as const;
