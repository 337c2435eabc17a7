/**
 * The folders of src/lib from top to bottom: each may import only those below it, and pages (src/routes) import them all.
 * The linter and src/lib/structure.test.ts read this list; a new folder gets a line here.
 *
 * @type {Record<string, string>}
 */
export const FOLDERS = {
  shell: 'what surrounds every page: sidebar, banners, inspector, routing of signed-out people',
  settings: 'the pages of the settings',
  projects: 'the page of a project, and the list of projects',
  page: 'the page of a conversation, and of a new one',
  replay: 'asking a whole conversation again with other models',
  feed: 'the scrolling list of rounds',
  round: 'one question with its replies, and what closes the round',
  reply: 'one reply, its menu and its states; replies side by side',
  composer: 'writing a message, its settings, and the outbox',
  receipt: 'what a model was sent for one reply, and what that cost',
  personas: 'the page of personas and their editor',
  tree: 'the branches of a conversation: map, log, comparison',
  attachments: 'files that belong to one message',
  commands: 'every action as data: palette, shortcuts, keys',
  files: 'the files of a project',
  search: 'the search page',
  conversations: 'the list of conversations, their names and branches',
  votes: 'best marks, blind votes, the leaderboard',
  lanes: 'a round as data: one lane for each voice, states, errors, layouts',
  council: 'who is asked and how: models, personas, modes, estimates',
  models: 'models by provider',
  seats: 'seats as colours, shapes and drawings',
  people: 'accounts, names, sign-in',
  panels: 'what the inspector shows now',
  frame: 'the bar over a page and the drawer',
  appearance: 'theme, size and font on this device',
  markdown: 'text of models as safe markup',
  format: 'numbers and times as text',
  ui: 'buttons, menus, dialogs: no word of the domain',
  live: 'the socket, the events, the store',
  api: 'one request function, and types generated from the server',
};

/** @param {string} folder @returns {string[]} The folders it may not import. */
export function above(folder) {
  const names = Object.keys(FOLDERS);
  return names.slice(0, names.indexOf(folder));
}
