// The one place that talks to the server. A failure is an ApiError; status 0 means the server was not reached.

export class ApiError extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** Whether this person is not, or no longer, signed in. */
  get signedOut() {
    return this.status === 401;
  }
}

const PATIENCE = 15000; // milliseconds: a server that hangs is a server that is not there

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE) });
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  let body = null;
  try {
    body = await response.json();
  } catch {
    if (response.ok) throw new ApiError(0, "The server's answer was cut short.");
  }
  if (!response.ok) {
    const after = Number(response.headers.get("Retry-After"));
    throw new ApiError(response.status, body?.error ?? `The server answered ${response.status}.`, after || null);
  }
  return body;
}

/** The JSON at a path. */
export function get(path) {
  return request(path, { headers: { Accept: "application/json" } });
}

/** What the server says to a JSON body. Small bodies outlive the page, so closing a tab does not lose an answer. */
export function post(path, body) {
  const text = JSON.stringify(body);
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-Mqnet": "1" },
    body: text,
    keepalive: text.length < 32768,
  });
}

/** Where an item's image is; smaller where a size is named. */
export function imageAt(id, size = null) {
  const path = `/api/items/${encodeURIComponent(id)}/image`;
  return size === null ? path : `${path}?size=${size}`;
}

/** A random key for an answer. `crypto.randomUUID` is missing on plain http beyond this machine; this is not. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
