/** Requests about one's own account. */
import { request } from '../api/client';
import type { Me, NewSetup } from '../api/types';

export const signIn = (email: string, password: string) =>
  request<Me>('POST', '/api/login', { email, password });

export const setUp = (account: NewSetup) => request<Me>('POST', '/api/setup', account);

export const changePassword = (current: string, chosen: string) =>
  request('PUT', '/api/me/password', { current, new: chosen });

export const endSession = (id: string) => request('DELETE', `/api/sessions/${id}`);
