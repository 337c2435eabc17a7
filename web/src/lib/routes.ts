/** Every address of the house, in one place. */

export const routes = {
  home: '/',
  newConversation: '/new',
  conversation: (id: string) => `/c/${id}`,
  archived: '/archived',
  signIn: '/sign-in',
  setup: '/set-up',
  settings: (panel: 'appearance' | 'sessions' | 'account' | 'models' = 'appearance') => `/settings/${panel}`,
  newProject: '/projects/new',
} as const;
