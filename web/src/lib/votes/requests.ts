/** Requests that cast a vote and read the leaderboard. */
import { request } from '$lib/api/client';
import type { VoteValue, Leaderboard, Vote } from '$lib/api/types';
import { withErrorToast } from '$lib/ui/errorToast';

export function vote(messageId: string, verdict: VoteValue): Promise<void> {
  return withErrorToast(
    'The vote was not counted.',
    request<Vote>('POST', `/api/messages/${messageId}/vote`, { verdict }),
  );
}

export function readLeaderboard(projectId: string): Promise<Leaderboard> {
  return request<Leaderboard>('GET', `/api/projects/${projectId}/leaderboard`);
}
