// What one person labels: the items ahead, the answers behind, and the way between them. Views draw it; this decides.
//
// `ahead[0]` is the item in front of the person. It is never swapped under their fingers while the page is in view: a newer
// ranking changes only what comes after it. `behind` is this person's answers, oldest first; with `looking` at one of them an
// answer is a correction.

import { ApiError, get, imageAt, newKey, post } from "./api.js";
import { Clock } from "./clock.js";
import { Outbox } from "./outbox.js";
import { named } from "./words.js";

const PRELOADED = 10;
const RENEWAL = 20000; // milliseconds between two calls that renew the leases; they last minutes

export class Session extends EventTarget {
  ahead = [];
  behind = [];
  flagged = new Map(); // item id -> note
  looking = null; // index into `behind`, or null: at the front
  reachable = true;
  wanted = PRELOADED + 1;
  clock = new Clock();
  #images = new Map();
  #settled = new Map(); // item id -> when the server confirmed its answer
  #filling = null;
  #again = false;
  #generation = 0;
  #renewed = 0;
  #state;

  /** The session of whoever is signed in. */
  static async begin() {
    const [campaign, state, history] = await Promise.all([
      get("/api/campaign"),
      get("/api/state"),
      get("/api/history?limit=50"),
    ]);
    const session = new Session(campaign, state, history.answers);
    await session.refill();
    return session;
  }

  constructor(campaign, state, history) {
    super();
    this.campaign = campaign;
    this.#state = state;
    this.behind = history.map(recalled).reverse();
    this.outbox = new Outbox(`${campaign.id ?? campaign.name}.${campaign.user.name}`);
    this.outbox.addEventListener("accepted", ({ detail }) => this.#accepted(detail));
    this.outbox.addEventListener("refused", ({ detail }) => this.#refused(detail));
    this.outbox.addEventListener("change", () => this.#tell());
    this.outbox.flush();
    document.addEventListener("visibilitychange", () => this.#shown());
  }

  get state() {
    return this.#state;
  }

  /** The item to answer now, or null. */
  get current() {
    return this.looking === null ? (this.ahead[0] ?? null) : this.behind[this.looking].item;
  }

  /** The answer that stands for the current item, or null. */
  get standing() {
    return this.looking === null ? null : this.behind[this.looking].answer;
  }

  /** The element that shows an item's image, loading since it came into view. */
  image(item) {
    let image = this.#images.get(item.id);
    if (!image) {
      image = new Image();
      image.decoding = "async";
      image.draggable = false;
      image.src = item.image ?? imageAt(item.id);
      this.#images.set(item.id, image);
    }
    return image;
  }

  /** Answers the current item and moves on. */
  answer(answer, view = "focus") {
    const item = this.current;
    if (!item) return;
    const body = { item: item.id, answer, seconds: this.clock.seconds(), view, key: newKey() };
    if (this.looking === null) {
      this.ahead.shift();
      this.behind.push({ item, answer });
    } else {
      this.behind[this.looking].answer = answer;
      this.looking = null;
    }
    this.#send([body]);
  }

  /** Answers several items ahead at once: `marks` is a list of [item, answer]. */
  answerPage(marks, seconds) {
    const ids = new Set(marks.map(([item]) => item.id));
    const each = seconds === null || marks.length === 0 ? null : Math.round((1000 * seconds) / marks.length) / 1000;
    this.ahead = this.ahead.filter((item) => !ids.has(item.id));
    this.behind.push(...marks.map(([item, answer]) => ({ item, answer })));
    this.#send(marks.map(([item, answer]) => ({ item: item.id, answer, seconds: each, view: "grid", key: newKey() })));
  }

  /** Takes the last answer back, or steps to it where it must stand until it is replaced. */
  async undo() {
    if (!(await this.outbox.flush())) return this.#stepBack();
    let reply;
    try {
      reply = await post("/api/undo", {});
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 0) return this.#stepBack();
      return this.say(error.status === 409 ? "There is nothing left to undo." : error.message);
    }
    const { item, was, withdrawn } = reply;
    const at = this.behind.findLastIndex((entry) => entry.item.id === item.id);
    this.#generation += 1; // an answer to an older request for items does not know of this
    this.#settled.delete(item.id);
    if (withdrawn) {
      if (at >= 0) this.behind.splice(at, 1);
      this.looking = null;
      this.ahead = [item, ...this.ahead.filter((other) => other.id !== item.id)];
      this.say(`Taken back: ${named(was)}.`);
    } else {
      if (at < 0) this.behind.unshift({ item, answer: was });
      this.looking = Math.max(at, 0);
      this.say(`This answer, ${named(was)}, is from a closed round. It stands until you give another.`);
    }
    this.#moved();
    return reply;
  }

  /** Looks at the answer before (-1) or after (+1) the current item; past the last one is the front. */
  look(step) {
    const at = (this.looking ?? this.behind.length) + step;
    if (at < 0) return this.say("This is the first of your answers kept at hand.");
    if (this.looking === null && step > 0) return undefined;
    this.looking = at >= this.behind.length ? null : at;
    return this.#moved();
  }

  /** Looks at one of the answers behind, by index; null is the front. */
  lookAt(index) {
    this.looking = index;
    this.#moved();
  }

  /** Flags the current item for review, or takes the flag away. */
  async flag(item, flagged, note) {
    try {
      await post("/api/flags", { item: item.id, flagged, note });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.say(`The flag was not saved: ${error.message}`);
    }
    if (flagged) this.flagged.set(item.id, note);
    else this.flagged.delete(item.id);
    this.#tell();
    return this.say(flagged ? "Flagged for review." : "Flag taken away.");
  }

  /** Fetches the items ahead; the one in front stays where it is, unless `fresh`. */
  async refill(fresh = false) {
    if (this.#filling) {
      this.#again = true; // what is being fetched may be old already
      return this.#filling;
    }
    this.#filling = this.#fill(fresh);
    try {
      await this.#filling;
    } finally {
      this.#filling = null;
    }
    if (this.#again) {
      this.#again = false;
      return this.refill();
    }
    return undefined;
  }

  /** Reads the state, and the items ahead where they may have changed. */
  async poll() {
    let state;
    try {
      state = await get("/api/state");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#failed(error);
      return;
    }
    this.#reached();
    const before = this.#state;
    this.#state = state;
    const turned = before.round !== state.round || before.state !== state.state;
    if (turned && before.state !== "done" && state.state === "asking") this.say(`Round ${state.round} is open.`);
    this.#tell();
    if (turned || this.ahead.length === 0 || Date.now() - this.#renewed > RENEWAL) await this.refill();
  }

  /** A sentence for the person, seen and read aloud. */
  say(text) {
    this.dispatchEvent(new CustomEvent("said", { detail: text }));
  }

  #send(bodies) {
    this.outbox.add(bodies);
    this.#moved();
  }

  async #fill(fresh) {
    const [asked, generation] = [Date.now(), this.#generation];
    let reply;
    try {
      reply = await get(`/api/next?n=${this.wanted}`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#failed(error);
      return;
    }
    this.#reached();
    if (generation !== this.#generation) return;
    this.#renewed = asked;
    const { items, ...state } = reply;
    this.#state = { ...this.#state, ...state };
    const offered = items.filter((item) => !this.outbox.holds(item.id) && (this.#settled.get(item.id) ?? 0) < asked);
    const ended = this.#state.state === "done" || this.#state.state === "stopped";
    const front = fresh || ended ? undefined : this.ahead[0];
    const before = this.ahead[0]?.id;
    this.ahead = front ? [front, ...offered.filter((item) => item.id !== front.id)] : offered;
    this.#preload();
    if (this.looking === null && this.ahead[0]?.id !== before) this.#moved();
    else this.#tell();
  }

  #preload() {
    const near = [...this.ahead.slice(0, this.wanted), ...this.behind.slice(-PRELOADED).map((entry) => entry.item)];
    const kept = new Set(near.map((item) => item.id));
    for (const id of this.#images.keys()) if (!kept.has(id)) this.#images.delete(id);
    for (const item of this.ahead.slice(0, this.wanted)) if (item.kind === "image") this.image(item);
  }

  #accepted({ accepted, progress, bodies }) {
    const now = Date.now();
    for (const body of bodies) this.#settled.set(body.item, now);
    this.#reached();
    this.#state = { ...this.#state, progress };
    for (const line of accepted) {
      const entry = this.behind.findLast((behind) => behind.item.id === line.item);
      if (entry) entry.early = line.early;
    }
    if (this.ahead.length < Math.ceil(this.wanted / 2)) this.refill();
  }

  #refused({ body, error }) {
    this.behind = this.behind.filter((entry) => entry.item.id !== body.item);
    this.looking = null;
    this.say(`Your answer for '${body.item}' was not taken: ${error.message}`);
    this.refill();
    this.#moved();
  }

  #stepBack() {
    if (this.behind.length === 0) return this.say("There is nothing left to undo.");
    this.look(-1);
    return this.say("The server does not answer: give another answer to replace this one.");
  }

  #shown() {
    if (document.hidden) return;
    if (Date.now() - this.#renewed > RENEWAL) this.refill(true); // the leases may have run out meanwhile
  }

  #reached() {
    if (!this.reachable) this.outbox.flush();
    this.reachable = true;
  }

  #failed(error) {
    if (error.signedOut) this.dispatchEvent(new CustomEvent("signedout"));
    this.reachable = false;
    this.#tell();
  }

  #moved() {
    this.#preload();
    this.dispatchEvent(new CustomEvent("moved"));
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new CustomEvent("change"));
  }
}

function recalled(line) {
  const { item, answer, text = null, image = null } = line;
  const id = typeof item === "string" ? item : item.id;
  return { item: { id, kind: text === null ? "image" : "text", text, image, early: false }, answer };
}
