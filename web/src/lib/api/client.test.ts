import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError, onSignedOut, request } from './client';
import { ulid } from './ulid';

function answer(status: number, body?: unknown, headers: Record<string, string> = {}): void {
  vi.stubGlobal('fetch', () =>
    Promise.resolve(new Response(body === undefined ? null : JSON.stringify(body), { status, headers })),
  );
}

const caught = (promise: Promise<unknown>) =>
  promise.then(() => null).catch((reason: unknown) => reason as ApiError);

afterEach(() => vi.unstubAllGlobals());

describe('a request', () => {
  it('brings back what the server says', async () => {
    answer(200, { items: [1] });
    expect(await request('GET', '/api/models')).toEqual({ items: [1] });
  });

  it('brings back nothing when there is nothing', async () => {
    answer(204);
    expect(await request('DELETE', '/api/conversations/C')).toBeUndefined();
  });

  it('that is refused carries the code, the sentence, the incident and how long to wait', async () => {
    answer(
      429,
      { code: 'too_many_turns', message: 'Eight at a time.', incident: 'abc' },
      { 'retry-after': '7' },
    );
    const error = await caught(request('POST', '/api/turn', {}));
    expect(error).toMatchObject({
      status: 429,
      code: 'too_many_turns',
      message: 'Eight at a time.',
      incident: 'abc',
      retryAfter: 7,
    });
  });

  it('that meets a proxy instead of the server still ends in a sentence', async () => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('<h1>Bad gateway</h1>', { status: 502 })));
    const error = await caught(request('GET', '/api/me'));
    expect(error?.code).toBe('unexpected');
    expect(error?.message).toContain('502');
  });

  it('without a network says so', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    expect(await caught(request('GET', '/api/me'))).toMatchObject({ status: 0, code: 'offline' });
  });

  it('answered with 401 ends the session here, but a wrong password does not', async () => {
    const ended = vi.fn();
    onSignedOut(ended);
    answer(401, { code: 'not_signed_in', message: 'Sign in first.', incident: 'x' });
    await caught(request('POST', '/api/login', {}));
    expect(ended).not.toHaveBeenCalled();
    await caught(request('GET', '/api/projects'));
    expect(ended).toHaveBeenCalledOnce();
  });
});

describe('an id made here', () => {
  it('is a ULID: time first, so that it sorts', () => {
    expect(ulid(0, new Uint8Array(10))).toBe('0'.repeat(26));
    expect(ulid(281474976710655, new Uint8Array(10).fill(255))).toBe('7' + 'Z'.repeat(25));
    expect(ulid(1000) < ulid(2000)).toBe(true);
    expect(ulid()).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  });
});
