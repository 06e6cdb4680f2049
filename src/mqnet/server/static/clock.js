// The time a person looks at an item. A hidden page does not count, and a long pause is a break, not an answer time.

const BREAK = 300; // seconds

export class Clock {
  #elapsed = 0;
  #since = null;

  constructor() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#pause() : this.#resume()));
  }

  /** Begins at zero. */
  start() {
    this.#elapsed = 0;
    this.#since = document.hidden ? null : performance.now();
    this.#running = true;
  }

  /** Seconds since the start, or null when they say nothing about the item. */
  seconds() {
    if (!this.#running) return null;
    const total = (this.#elapsed + (this.#since === null ? 0 : performance.now() - this.#since)) / 1000;
    return total > BREAK ? null : Math.round(total * 1000) / 1000;
  }

  #running = false;

  #pause() {
    if (this.#since !== null) this.#elapsed += performance.now() - this.#since;
    this.#since = null;
  }

  #resume() {
    if (this.#running && this.#since === null) this.#since = performance.now();
  }
}
