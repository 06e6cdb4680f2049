// The focus view: one item, the answers beside it. Nothing moves when the item changes.

import { Choices } from "./choices.js";
import { cap, h, write } from "./dom.js";
import { large, small } from "./item.js";
import { written } from "./keys.js";
import { banner, nothing, situation } from "./situation.js";
import { named } from "./words.js";

const STRIP = 8;
const LINE = 90; // pixels a text scrolls per arrow key

export class FocusView {
  #session;
  #shown = undefined; // the item drawn: null for none, undefined before the first
  #shownAt = undefined;
  #ready = false;
  #close = false;
  #thumbs = new Map(); // item id -> the small view in the strip
  #banner = banner();

  constructor(session, { openGrid, openFlag }) {
    this.#session = session;
    this.choices = new Choices(session.campaign.classes, (answer) => this.#answer(answer));
    const shift = this.choices.many;
    this.stage = h("div", { class: "stage" });
    this.correcting = h("p", { class: "banner correct", hidden: true });
    this.caption = h("p", { class: "caption" });
    this.strip = h("ol", { class: "strip", "aria-label": "Your last answers" });
    this.told = h("p", { class: "unseen", role: "status" });
    const tool = (label, key, run) =>
      h(
        "button",
        { type: "button", class: "tool", "aria-keyshortcuts": shift ? `Shift+${key}` : key, onclick: run },
        cap(written(key, shift)),
        h("span", {}, label),
      );
    this.flagButton = tool("flag", "f", () => this.#flag());
    this.tools = h(
      "div",
      { class: "tools", role: "group", "aria-label": "Tools" },
      tool("undo", "u", () => session.undo()),
      this.flagButton,
      tool("grid", "g", openGrid),
    );
    this.openFlag = openFlag;
    this.element = h(
      "section",
      { class: shift ? "focus wide-panel" : "focus", "aria-label": "Label one item" },
      h("div", { class: "viewer" }, this.#banner.element, this.correcting, this.stage, this.caption, this.strip),
      h("div", { class: "panel" }, this.choices.element, this.tools),
      this.told,
    );
    const empty = (field) => field.value === "";
    this.bindings = [
      ...this.choices.bindings,
      {
        keys: ["u"],
        shift,
        does: "undo, also across rounds",
        run: () => session.undo(),
        typing: empty,
        repeats: false,
      },
      { keys: ["Backspace"], does: "undo", run: () => session.undo(), typing: empty },
      { keys: ["f"], shift, does: "flag for review", run: () => this.#flag(), typing: empty },
      { keys: ["g"], shift, does: "grid: many items at once", run: openGrid, typing: empty },
      {
        keys: ["ArrowLeft"],
        does: "look at the answer before",
        run: () => session.look(-1),
        typing: empty,
        repeats: true,
      },
      { keys: ["ArrowRight"], does: "forward again", run: () => session.look(1), typing: empty, repeats: true },
      {
        keys: ["z"],
        shift,
        does: "look closer: a large image in its own size, a tiny one smoothed",
        run: () => this.#closer(),
        typing: empty,
      },
      { keys: ["ArrowDown"], does: "scroll a long text", run: () => this.#scroll(1), repeats: true },
      { keys: ["ArrowUp"], hidden: true, does: "scroll a long text", run: () => this.#scroll(-1), repeats: true },
    ];
  }

  /** Shows this view's items; call when it comes into sight and when the session moves. */
  show() {
    const session = this.#session;
    const item = session.current;
    if (this.#shown === undefined || item?.id !== this.#shown?.id || session.looking !== this.#shownAt)
      this.#draw(item);
    this.update();
  }

  /** Draws what changes without the item changing. */
  update() {
    const session = this.#session;
    const item = session.current;
    const hasItem = item !== null;
    const found = situation({
      state: session.state,
      campaign: session.campaign,
      hasItem,
      reachable: session.reachable,
    });
    this.#banner.update(hasItem && session.looking === null ? found : null);
    if (!hasItem) this.#empty(found);
    this.choices.update(session.standing, hasItem && this.#ready);
    const flagged = item !== null && session.flagged.has(item.id);
    this.flagButton.setAttribute("aria-pressed", String(flagged));
    this.flagButton.setAttribute("aria-disabled", String(!hasItem));
    this.#drawStrip();
  }

  #draw(item) {
    const session = this.#session;
    this.#shown = item;
    this.#shownAt = session.looking;
    this.#ready = false;
    this.choices.clear();
    this.stage.dataset.text = "";
    const standing = session.standing;
    this.correcting.hidden = standing === null;
    if (standing) {
      this.correcting.replaceChildren(
        h("span", {}, "You answered ", h("strong", {}, named(standing)), ". Another answer replaces it. "),
        h("button", { type: "button", class: "plain small", onclick: () => session.lookAt(null) }, "Back to the front"),
      );
    }
    if (item === null) {
      write(this.caption, "");
      return;
    }
    write(this.caption, item.early ? `${item.id} · early` : item.id);
    this.stage.replaceChildren(
      large(item, item.kind === "image" ? session.image(item) : null, this.#close, () => {
        this.#ready = true;
        session.clock.start();
        this.choices.update(session.standing, true);
      }),
    );
  }

  #empty(found) {
    const text = JSON.stringify(found);
    if (this.stage.dataset.text === text) return;
    this.stage.dataset.text = text;
    this.stage.replaceChildren(nothing(found));
    write(this.told, `${found.title}. ${found.text}`);
  }

  #answer(answer) {
    const session = this.#session;
    if (session.current === null || !this.#ready) return;
    const corrected = session.standing;
    session.answer(answer);
    write(this.told, corrected ? `Corrected: ${named(answer)} instead of ${named(corrected)}.` : `${named(answer)}.`);
  }

  #flag() {
    if (this.#session.current) this.openFlag(this.#session.current);
  }

  #closer() {
    this.#close = !this.#close;
    this.stage.querySelector(".frame")?.classList.toggle("closer", this.#close);
  }

  #scroll(step) {
    this.stage.querySelector(".reading")?.scrollBy({ top: step * LINE });
  }

  #drawStrip() {
    const session = this.#session;
    const from = Math.max(0, session.behind.length - STRIP);
    const signature =
      session.behind
        .slice(from)
        .map((entry) => `${entry.item.id}=${named(entry.answer)}`)
        .join("\n") + session.looking;
    if (this.strip.dataset.drawn === signature) return;
    this.strip.dataset.drawn = signature;
    const past = session.behind.slice(from);
    const thumbs = new Map(past.map(({ item }) => [item.id, this.#thumbs.get(item.id) ?? small(item)]));
    this.#thumbs = thumbs;
    this.strip.replaceChildren(
      ...past.map(({ item, answer }, i) => {
        const at = from + i;
        const button = h(
          "button",
          {
            type: "button",
            class: `past ${answer.kind}`,
            "aria-current": at === session.looking ? "true" : null,
            onclick: () => session.lookAt(at),
            title: `${item.id}: ${named(answer)}`,
            "aria-label": `Look again at the item answered ${named(answer)}`,
          },
          thumbs.get(item.id),
          h("span", { class: "label" }, named(answer)),
        );
        return h("li", {}, button);
      }),
    );
  }
}
