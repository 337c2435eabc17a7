/** Requests about replays: estimate, start, read, stop. */
import { request } from '$lib/api/client';
import type { NewReplay, Replay, ReplayEstimate, ReplayProgress, ReplayView } from '$lib/api/types';

export function estimate(conversationId: string, wanted: NewReplay): Promise<ReplayEstimate> {
  return request<ReplayEstimate>('POST', `/api/conversations/${conversationId}/replay/estimate`, wanted);
}

export function begin(conversationId: string, wanted: NewReplay): Promise<ReplayProgress> {
  return request<ReplayProgress>('POST', `/api/conversations/${conversationId}/replay`, wanted);
}

export async function read(branchId: string): Promise<Replay | null> {
  return (await request<ReplayView>('GET', `/api/conversations/${branchId}/replay`)).replay;
}

export async function stop(branchId: string): Promise<void> {
  await request<ReplayView>('POST', `/api/conversations/${branchId}/replay/stop`);
}
