// Answers on their way. Each is stored in this browser before the page moves on, and forgotten only when the server has
// confirmed it. Sending one twice is harmless: its key, made here, is what the server knows it by.

import { ApiError, post } from "./api.js";

const LONGEST_WAIT = 8000; // milliseconds between two attempts
const LARGEST_BATCH = 40000; // characters; the server refuses bodies above 64 KiB

// Storage can be full or forbidden: the answers are then in memory only, which is said nowhere but here.
function keep(name, entry) {
  try {
    localStorage.setItem(name, JSON.stringify(entry));
  } catch {
    return;
  }
}

function drop(name) {
  try {
    localStorage.removeItem(name);
  } catch {
    return;
  }
}

function left(prefix) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
    return names.map((name) => JSON.parse(localStorage.getItem(name)));
  } catch {
    return [];
  }
}

export class Outbox extends EventTarget {
  #prefix;
  #entries;
  #sending = null;
  #failures = 0;
  #timer = null;
  #alone = false; // after a refused batch, one by one until the refused one is found
  #last = 0;

  /** @param owner what tells this campaign and person from others at the same address */
  constructor(owner) {
    super();
    this.#prefix = `mqnet.outbox.${owner}/`;
    this.#entries = left(this.#prefix).sort((a, b) => a.at - b.at);
    window.addEventListener("online", () => this.flush());
  }

  get waiting() {
    return this.#entries.length;
  }

  /** "saved", "saving" or "offline". */
  get state() {
    if (this.#failures > 0) return "offline";
    return this.#entries.length > 0 ? "saving" : "saved";
  }

  /** Whether an answer for this item is still on its way. */
  holds(item) {
    return this.#entries.some((entry) => entry.body.item === item);
  }

  /** Stores answers and sends them. */
  add(bodies) {
    for (const body of bodies) {
      this.#last = Math.max(this.#last + 1, Date.now());
      const entry = { at: this.#last, body };
      this.#entries.push(entry);
      keep(this.#prefix + body.key, entry);
    }
    this.#tell();
    this.flush();
  }

  /** Sends what waits. Resolves true when nothing waits any more, false when the server was not reached. */
  async flush() {
    clearTimeout(this.#timer);
    while (this.#entries.length > 0) {
      this.#sending ??= this.#send().finally(() => (this.#sending = null));
      if (!(await this.#sending)) return false;
    }
    return true;
  }

  #batch() {
    const batch = [];
    let size = 0;
    for (const entry of this.#entries) {
      size += JSON.stringify(entry.body).length;
      if (batch.length > 0 && (this.#alone || size > LARGEST_BATCH)) break;
      batch.push(entry);
    }
    return batch;
  }

  async #send() {
    const batch = this.#batch();
    try {
      const reply = await post("/api/answers", { answers: batch.map((entry) => entry.body) });
      this.#failures = 0;
      this.#alone = false;
      this.#forget(batch);
      this.dispatchEvent(new CustomEvent("accepted", { detail: { ...reply, bodies: batch.map((e) => e.body) } }));
      this.#tell();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.passing || error.signedOut || error.status === 403) return this.#later(error);
      this.#failures = 0;
      if (batch.length > 1) {
        this.#alone = true;
        return true;
      }
      this.#forget(batch);
      this.dispatchEvent(new CustomEvent("refused", { detail: { body: batch[0].body, error } }));
      this.#tell();
      return true;
    }
  }

  #later(error) {
    this.#failures += 1;
    const wait = error.retryAfter ? 1000 * error.retryAfter : Math.min(LONGEST_WAIT, 250 * 2 ** this.#failures);
    this.#timer = setTimeout(() => this.flush(), wait);
    if (error.signedOut) this.dispatchEvent(new CustomEvent("signedout"));
    this.#tell();
    return false;
  }

  #forget(batch) {
    const keys = new Set(batch.map((entry) => entry.body.key));
    this.#entries = this.#entries.filter((entry) => !keys.has(entry.body.key));
    for (const key of keys) drop(this.#prefix + key);
  }

  #tell() {
    this.dispatchEvent(new CustomEvent("change"));
  }
}
