/** Giving a vote, and reading what all of them say. */
import { request } from '$lib/api/client';
import type { Choice, Leaderboard, Vote } from '$lib/api/types';
import { saying } from '$lib/conversation/replyActions';

export function vote(messageId: string, verdict: Choice): Promise<void> {
  return saying(
    'The vote was not counted.',
    request<Vote>('POST', `/api/messages/${messageId}/vote`, { verdict }),
  );
}

export function readLeaderboard(projectId: string): Promise<Leaderboard> {
  return request<Leaderboard>('GET', `/api/projects/${projectId}/leaderboard`);
}
