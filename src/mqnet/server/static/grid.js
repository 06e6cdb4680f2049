// The grid view: a page of items at once. Mark what is junk, say what the rest is, confirm the page in one request.
//
// The pen is what a tap or Space marks with. Keys mark the item in focus directly. The rest, everything unmarked, becomes the
// chosen class, or is left open.

import { h, write } from "./dom.js";
import { small } from "./item.js";
import { keyCap } from "./keys.js";
import { banner, nothing, situation } from "./situation.js";
import { NONE, count, named, same } from "./words.js";

const DIGITS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
const MOST = 48;
const AROUND = 250; // pixels of a page that are not cells
const AROUND_NARROW = 310;
const GAP = 10; // between cells
const LEFT_OPEN = "";
const GLANCE = 400; // milliseconds a page must have been in view: a second Enter confirms nothing unseen

export class GridView {
  #session;
  #page = [];
  #marks = new Map(); // item id -> answer
  #cells = new Map(); // item id -> cell
  #last = null; // the page confirmed last, to take back as one
  #banner = banner();
  #pen = { kind: "ood" };
  #at = 0;
  #turnedAt = 0;

  constructor(session, { openFocus, openFlag }) {
    this.#session = session;
    const { classes } = session.campaign;
    const answers = [{ kind: "ood" }, { kind: "skip" }, ...classes.map((name) => ({ kind: "known", name }))];
    const keyOf = (answer, i) => (answer.kind === "ood" ? "x" : answer.kind === "skip" ? "s" : (DIGITS[i - 2] ?? null));
    this.pen = h(
      "select",
      { id: "pen", onchange: () => (this.#pen = answers[this.pen.selectedIndex]) },
      answers.map((a) => h("option", {}, named(a) === "skipped" ? "skip" : named(a))),
    );
    this.rest = h(
      "select",
      { id: "rest", onchange: () => this.update() },
      h("option", { value: LEFT_OPEN }, "stays open"),
      classes.map((name) => h("option", { value: name }, name)),
    );
    if (classes.length === 1) this.rest.value = classes[0];
    this.legend = h(
      "p",
      { class: "legend" },
      answers
        .slice(0, 12)
        .map((answer, i) =>
          h(
            "span",
            { class: answer.kind },
            keyCap(keyOf(answer, i)),
            ` ${named(answer) === "skipped" ? "skip" : named(answer)}`,
          ),
        ),
    );
    this.sums = h("p", { class: "sums", role: "status" });
    this.confirm = h(
      "button",
      { type: "button", class: "confirm", onclick: () => this.#confirm(), "aria-keyshortcuts": "Enter" },
      keyCap("Enter"),
      "Confirm page",
    );
    this.items = h("div", { class: "cells", role: "group", "aria-label": "Items to label" });
    this.told = h("p", { class: "unseen", role: "status" });
    this.element = h(
      "section",
      { class: "grid", "aria-label": "Label many items at once" },
      this.#banner.element,
      h(
        "div",
        { class: "bar" },
        h("label", { for: "pen" }, "A tap marks", this.pen),
        h("label", { for: "rest" }, "The rest", this.rest),
        h("span", { class: "grow" }),
        h(
          "button",
          { type: "button", class: "tool", onclick: () => this.#undo(), "aria-keyshortcuts": "u" },
          keyCap("u"),
          h("span", {}, "undo"),
        ),
        h(
          "button",
          { type: "button", class: "tool", onclick: openFocus, "aria-keyshortcuts": "g" },
          keyCap("g"),
          h("span", {}, "one by one"),
        ),
      ),
      this.legend,
      this.items,
      h("div", { class: "finish" }, this.sums, this.confirm),
      this.told,
    );
    this.bindings = [
      {
        keys: DIGITS.slice(0, classes.length),
        does: "mark the item in focus as this class",
        run: ({ key }) => this.#mark({ kind: "known", name: classes[DIGITS.indexOf(key)] }),
      },
      { keys: ["x"], does: `mark it ${NONE}`, run: () => this.#mark({ kind: "ood" }) },
      { keys: ["s"], does: "mark it to be skipped", run: () => this.#mark({ kind: "skip" }) },
      { keys: [" "], does: "mark it with the pen, or unmark it", run: () => this.#toggle(this.#at) },
      { keys: ["r"], does: "choose the next class for the rest", run: () => this.#turnRest() },
      { keys: ["Enter"], does: "confirm the page", over: ".cell", run: () => this.#confirm() },
      { keys: ["u"], does: "take the last page back", run: () => this.#undo() },
      {
        keys: ["Backspace"],
        does: "unmark, or take the last page back",
        run: () => (this.#marks.has(this.#page[this.#at]?.id) ? this.#mark(null, false) : this.#undo()),
      },
      { keys: ["f"], does: "flag for review", run: () => this.#page[this.#at] && openFlag(this.#page[this.#at]) },
      {
        keys: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"],
        does: "move between items",
        run: ({ key }) => this.#move(key),
        repeats: true,
      },
      { keys: ["Home"], hidden: true, does: "first item", run: () => this.#focus(0) },
      { keys: ["End"], hidden: true, does: "last item", run: () => this.#focus(this.#page.length - 1) },
      { keys: ["g"], does: "one item at a time", run: openFocus },
    ];
  }

  /** How many items fill the page at this window's size. */
  get size() {
    const text = this.#session.ahead[0]?.kind === "text";
    const narrow = window.innerWidth < 720;
    const least = text ? 304 : narrow ? 96 : Math.min(Math.max(144, 0.11 * window.innerWidth), 208);
    const across = window.innerWidth - (narrow ? 28 : 40) + GAP;
    const columns = Math.max(1, Math.floor(across / (least + GAP)));
    const high = text ? 154 : (narrow ? across / columns - GAP : least) + 40;
    const rows = Math.max(2, Math.floor((window.innerHeight - (narrow ? AROUND_NARROW : AROUND)) / high));
    return Math.min(MOST, columns * rows);
  }

  /** Comes into sight; the page in work is kept. */
  show() {
    const session = this.#session;
    session.looking = null;
    session.wanted = 2 * this.size;
    if (session.ahead.length < this.size) session.refill();
    this.update();
  }

  /** Draws what changes without the page changing. */
  update() {
    const session = this.#session;
    this.#fill();
    const hasItem = this.#page.length > 0;
    const found = situation({
      state: session.state,
      campaign: session.campaign,
      hasItem,
      reachable: session.reachable,
    });
    this.#banner.update(hasItem ? found : null);
    if (!hasItem) {
      const text = JSON.stringify(found);
      if (this.items.dataset.text !== text) {
        this.items.dataset.text = text;
        this.items.replaceChildren(nothing(found));
      }
    }
    for (const item of this.#page) this.#dress(item);
    const sums = this.#sums();
    write(this.sums, sums === "" ? "Nothing marked yet" : sums);
    this.confirm.setAttribute("aria-disabled", String(sums === ""));
  }

  // A page that is not full grows at its end while nothing on it is marked: what is in view never moves.
  #fill() {
    if (this.#marks.size > 0 || this.#page.length >= this.size) return;
    const here = new Set(this.#page.map((item) => item.id));
    const further = this.#session.ahead.filter((item) => !here.has(item.id)).slice(0, this.size - here.size);
    if (further.length === 0) return;
    if (here.size === 0) this.#turnPage(further);
    else this.#extend(further);
  }

  #turnPage(items, marks = new Map()) {
    this.#page = [];
    this.#marks = marks;
    this.#cells.clear();
    this.#at = 0;
    this.items.dataset.text = "";
    this.items.replaceChildren();
    this.items.scrollTop = 0;
    this.#session.clock.start();
    this.#extend(items);
    const here = document.activeElement;
    if (!here || here === document.body || this.element.contains(here)) this.#focus(0);
  }

  #extend(items) {
    const from = this.#page.length;
    this.#page = [...this.#page, ...items];
    this.#turnedAt = performance.now();
    this.items.classList.toggle(
      "texts",
      this.#page.some((item) => item.kind === "text"),
    );
    this.items.append(...items.map((item, i) => this.#cell(item, from + i)));
    for (const item of items) this.#dress(item);
  }

  #cell(item, i) {
    const cell = h(
      "button",
      {
        type: "button",
        class: "cell",
        tabindex: i === 0 ? "0" : "-1",
        onclick: () => this.#toggle(i),
        onfocus: () => this.#reach(i),
      },
      small(item, 256),
      h("span", { class: "mark" }),
    );
    this.#cells.set(item.id, cell);
    return cell;
  }

  #answerFor(item) {
    const marked = this.#marks.get(item.id);
    if (marked) return marked;
    return this.rest.value === LEFT_OPEN ? null : { kind: "known", name: this.rest.value };
  }

  #dress(item) {
    const cell = this.#cells.get(item.id);
    const answer = this.#answerFor(item);
    const marked = this.#marks.has(item.id);
    const text = answer === null ? "open" : named(answer);
    cell.className = `cell ${answer?.kind ?? "open"}${marked ? " marked" : ""}${this.#session.flagged.has(item.id) ? " flagged" : ""}`;
    write(cell.querySelector(".mark"), text);
    const what = item.kind === "text" ? item.text : `Item ${this.#page.indexOf(item) + 1} of ${this.#page.length}`;
    cell.setAttribute("aria-label", `${what}: ${text}`);
    cell.setAttribute("aria-pressed", String(marked));
  }

  #sums() {
    const sums = new Map();
    for (const item of this.#page) {
      const answer = this.#answerFor(item);
      if (answer) sums.set(named(answer), (sums.get(named(answer)) ?? 0) + 1);
    }
    return [...sums].map(([name, n]) => `${n} ${name}`).join(", ");
  }

  #mark(answer, move = true) {
    const item = this.#page[this.#at];
    if (!item) return;
    if (answer === null) this.#marks.delete(item.id);
    else this.#marks.set(item.id, answer);
    if (move && this.#at + 1 < this.#page.length) this.#focus(this.#at + 1);
    this.update();
    write(this.told, answer === null ? "Unmarked." : `${named(answer)}.`);
  }

  #toggle(i) {
    this.#at = i;
    const marked = this.#marks.get(this.#page[i].id);
    this.#mark(marked && same(marked, this.#pen) ? null : this.#pen, false);
  }

  #turnRest() {
    this.rest.selectedIndex = (this.rest.selectedIndex + 1) % this.rest.options.length;
    this.update();
    write(this.told, this.rest.value === LEFT_OPEN ? "The rest stays open." : `The rest is ${this.rest.value}.`);
  }

  #reach(i) {
    this.#at = i;
    for (const [n, cell] of [...this.#cells.values()].entries()) cell.tabIndex = n === i ? 0 : -1;
  }

  #focus(i) {
    const cell = this.#cells.get(this.#page[i]?.id);
    cell?.focus({ preventScroll: false });
  }

  #move(key) {
    const cells = [...this.#cells.values()];
    if (cells.length === 0) return;
    const top = cells[0].offsetTop;
    const columns = Math.max(
      1,
      cells.findIndex((cell) => cell.offsetTop > top) === -1
        ? cells.length
        : cells.findIndex((cell) => cell.offsetTop > top),
    );
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
    const to = this.#at + step;
    if (to >= 0 && to < cells.length) this.#focus(to);
  }

  #confirm() {
    if (performance.now() - this.#turnedAt < GLANCE) return undefined;
    const marks = this.#page.map((item) => [item, this.#answerFor(item)]).filter(([, answer]) => answer !== null);
    if (marks.length === 0) return write(this.told, "Nothing is marked yet.");
    const seconds = this.#session.clock.seconds();
    const answered = new Set(marks.map(([item]) => item.id));
    const open = this.#page.filter((item) => !answered.has(item.id));
    const stays = new Set(open.map((item) => item.id));
    this.#last = { page: this.#page, marks: new Map(this.#marks), n: marks.length };
    const further = this.#session.ahead.filter((item) => !answered.has(item.id) && !stays.has(item.id));
    this.#turnPage([...open, ...further].slice(0, this.size));
    this.#session.answerPage(marks, seconds);
    this.#session.say(`Confirmed ${count(marks.length, "answer")}.`);
    this.#session.refill();
    return this.update();
  }

  async #undo() {
    const { n, page, marks } = this.#last ?? { n: 1, page: null, marks: null };
    const back = [];
    for (let i = 0; i < n; i += 1) {
      const reply = await this.#session.undo();
      if (!reply?.withdrawn) break;
      back.push(reply.item);
    }
    this.#last = null;
    this.#session.looking = null;
    const ids = new Set(back.map((item) => item.id));
    if (back.length === 0)
      return this.#session.say("These answers are from a closed round: correct them one by one (g, then u).");
    const order = page ?? [...back, ...this.#page];
    const next = order.filter((item) => ids.has(item.id) || this.#session.ahead.some((other) => other.id === item.id));
    this.#turnPage(next.slice(0, MOST), marks ?? new Map());
    this.update();
    return this.#session.say(`Taken back: ${count(back.length, "answer")}.`);
  }
}
