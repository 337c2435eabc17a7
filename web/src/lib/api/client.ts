/** The request function for the API; an error arrives as an ApiError with a sentence for the person. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export class ApiError extends Error {
  override name = 'ApiError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly incident: string | null = null,
    /** Seconds the server asks us to wait, when it says so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

let whenSignedOut: () => void = () => undefined;

/** Registers what to do when any request outside the sign-in pages is answered with 401. The store calls it once. */
export function onSignedOut(run: () => void): void {
  whenSignedOut = run;
}

export interface Options {
  signal?: AbortSignal;
  /** The version that was read: another one is not overwritten. */
  ifMatch?: number;
  /** The request outlives the page. */
  keepalive?: boolean;
}

/** A Blob goes as it is, everything else as JSON. */
export async function request<T = void>(
  method: Method,
  path: string,
  body?: unknown,
  options: Options = {},
): Promise<T> {
  const response = await send(method, path, body, options);
  if (response.ok) return (await contentOf(response)) as T;
  const error = await failureOf(response);
  if (error.status === 401 && path !== '/api/login') whenSignedOut();
  throw error;
}

/** A file that is sent for saving comes as its bytes. */
async function contentOf(response: Response): Promise<unknown> {
  if (response.status === 204) return undefined;
  const isFile = response.headers.get('content-type')?.startsWith('application/octet-stream');
  return isFile ? response.arrayBuffer() : response.json();
}

async function send(
  method: Method,
  path: string,
  body: unknown,
  { signal, ifMatch, keepalive }: Options,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'application/json' };
  const isRaw = body instanceof Blob;
  if (method !== 'GET') headers['content-type'] = isRaw ? 'application/octet-stream' : 'application/json';
  if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`;
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : isRaw ? body : JSON.stringify(body),
      credentials: 'same-origin',
      signal: signal ?? null,
      keepalive: keepalive ?? false,
    });
  } catch (reason) {
    if (signal?.aborted) throw reason;
    throw new ApiError(0, 'offline', 'The server cannot be reached. Check the connection and try again.');
  }
}

async function failureOf(response: Response): Promise<ApiError> {
  const body: { code?: string; message?: string; incident?: string } = await response
    .json()
    .catch(() => ({}));
  const after = Number(response.headers.get('retry-after'));
  return new ApiError(
    response.status,
    body.code ?? 'unexpected',
    body.message ?? `The server answered with ${response.status}. Try again in a moment.`,
    body.incident ?? null,
    after > 0 ? after : null,
  );
}
