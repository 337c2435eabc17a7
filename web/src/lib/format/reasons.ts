/** The words for a receipt: why a part was sent, why a part was left out, and where each is from. */
import type { LeftOut, LeftOutReason, Match, Segment, SegmentReason, SourceLocation } from '$lib/api/types';

export const SENT_BECAUSE: Record<SegmentReason, string> = {
  introduction: 'who answers, and how the conversation works',
  project: 'the project',
  project_instructions: 'the project’s instructions',
  provider_advice: 'what this provider’s models can do',
  file_list: 'the project’s files',
  partial_file_list: 'the project’s files, as many as fit',
  how_to_cite: 'how to cite',
  persona_instructions: 'the persona’s instructions',
  always_included: 'always included',
  recent: 'recent',
  attached: 'attached',
  attached_not_shown: 'attached, not shown',
  replied_to: 'replied to',
  quoted: 'quoted',
  search_introduction: 'what follows',
  retrieved: 'found by search',
  round_note: 'round number and title',
  asked_now: 'asked now',
  same_round: 'reply of this round',
  task: 'instructions',
  style: 'request for a shorter or longer reply',
  reply_so_far: 'the reply so far',
  continue: 'request to continue',
  branch_round: 'from the branch',
  branch_gap: 'rounds of the branch left out',
  other: 'another part',
};

export const LEFT_OUT_BECAUSE: Record<LeftOutReason, string> = {
  removed_by_user: 'taken out before it was asked again',
  over_budget: 'over the budget',
  with_older_rounds:
    'left out with the rounds before it, so that the provider’s cache stays valid for longer',
  outside_window: 'outside the window',
  hidden_by_own_lane: 'visibility “Each sees only you”: a reply of another voice',
  hidden_by_chosen: 'visibility “Only best replies”: another reply of this round was marked best',
  no_vision: 'this model cannot see images',
  image_bytes: 'the image is too large for models',
  image_side: 'the image has too many pixels for models',
  no_text: 'it holds no text',
  unreadable: 'it could not be read',
  not_among_best: 'not among the best',
  over_search_share: 'over the limit for search results',
  search_off: 'not searched: search is off for this project',
  search_failed: 'it failed, so nothing was searched',
  files_not_searched: 'not searched: files are off for this question',
  conversations_not_searched: 'not searched: other conversations are off for this question',
  other: 'not sent',
};

export const MATCHES: Record<Match, string> = { strong: 'strong match', match: 'match', weak: 'weak match' };

/** "recent", "instructions: critique", "strong match · 3 of 4 words" */
export function whySent({ reason, match, step, note }: Segment): string {
  if (match) return [match.strength ? MATCHES[match.strength] : '', match.why].filter(Boolean).join(' · ');
  if (step) return `${SENT_BECAUSE[reason]}: ${step}`;
  return note || SENT_BECAUSE[reason];
}

/** "over the budget", "not among the 3 best", or a note in place of both. */
export function whyLeftOut(left: LeftOut): string {
  return left.note || withNumber(left) || LEFT_OUT_BECAUSE[left.reason];
}

function withNumber({ reason, limit, round_number }: LeftOut): string {
  if (reason === 'outside_window' && round_number !== null)
    return `the first ${round_number} rounds are outside the window`;
  if (limit === null) return '';
  if (reason === 'not_among_best') return `not among the ${limit} best`;
  if (reason === 'image_bytes') return `models take images of up to ${limit / 1_000_000} MB`;
  if (reason === 'image_side') return `models take images of up to ${exact.format(limit)} pixels a side`;
  return '';
}

const exact = new Intl.NumberFormat('en');

/** "docs/plan.md:3-9", "docs/plan.md:3", "photo.png"; empty if it is no file. */
export function fileName(location: SourceLocation | null): string {
  if (!location?.path) return location?.file_name ?? '';
  const { path, start_line: from, end_line: to } = location;
  if (from === null) return path;
  return `${path}:${to === null || from === to ? from : `${from}-${to}`}`;
}

/** "Trains, round 2, Sam", "round 2"; empty if it is no other conversation. */
export function otherConversation(location: SourceLocation | null): string {
  if (location?.conversation_title == null) return '';
  const { conversation_title, round_number, speaker } = location;
  return [conversation_title, `round ${round_number}`, speaker].filter(Boolean).join(', ');
}

/** "docs/plan.md:3-9", "photo.png", "round 3, Beta", "what round 2 quotes", "the search" */
export function leftOutName(left: LeftOut): string {
  const { layer, location, round_number, reason, reference } = left;
  const name = WHOLE_PARTS[reason] ?? (fileName(location) || otherConversation(location));
  if (name) return name;
  if (round_number === null) return LAYERS[layer] ?? 'a part';
  if (reference) return `what round ${round_number} ${reference === 'quoted' ? 'quotes' : 'replies to'}`;
  return `round ${round_number}${location?.speaker ? `, ${location.speaker}` : ''}`;
}

/** Names of the parts that are left out as a whole, by reason. */
const WHOLE_PARTS: Partial<Record<LeftOutReason, string>> = {
  outside_window: 'earlier rounds',
  search_off: 'the search',
  search_failed: 'the search',
  files_not_searched: 'project files',
  conversations_not_searched: 'other conversations',
};

/** Names for what was deleted since, so that its own name is gone. */
const LAYERS: Partial<Record<LeftOut['layer'], string>> = {
  always: 'a file that is always sent',
  retrieved: 'a passage',
  rounds: 'earlier rounds',
  question: 'the question',
};
