// The review page, for the owner: items people disagree on or flagged, one after the other. The owner's answer settles one.

import { ApiError, get, newKey, post } from "./api.js";
import { Choices } from "./choices.js";
import { Clock } from "./clock.js";
import { h, write } from "./dom.js";
import { header } from "./header.js";
import { large, small } from "./item.js";
import { Keys, keyCap } from "./keys.js";
import { open, toaster } from "./page.js";
import { count, named } from "./words.js";

const POLL = 10000; // milliseconds

class Review {
  #items = [];
  #at = 0;
  #drawn = null;
  #clock = new Clock();

  constructor(campaign, say) {
    this.campaign = campaign;
    this.say = say;
    this.choices = new Choices(campaign.classes, (answer) => this.#settle(answer));
    this.list = h("ol", { class: "queue", "aria-label": "Items to review" });
    this.stage = h("div", { class: "stage" });
    this.votes = h("div", { class: "votes" });
    this.keep = h(
      "button",
      { type: "button", class: "confirm", onclick: () => this.#keep(), "aria-keyshortcuts": "Enter" },
      keyCap("Enter"),
      h("span", { class: "label" }),
    );
    this.told = h("p", { class: "unseen", role: "status" });
    this.element = h(
      "section",
      { class: this.choices.many ? "review wide-panel" : "review", "aria-label": "Review" },
      h("nav", { class: "side", "aria-label": "Items to review" }, this.list),
      h("div", { class: "viewer" }, this.stage, this.votes),
      h("div", { class: "panel" }, this.choices.element, this.keep),
      this.told,
    );
    const empty = (field) => field.value === "";
    this.bindings = [
      ...this.choices.bindings,
      { keys: ["Enter"], does: "keep the answer the votes come to", run: () => this.#keep(), typing: empty },
      { keys: ["ArrowDown", "ArrowRight"], does: "next item", run: () => this.#go(1), typing: empty, repeats: true },
      { keys: ["ArrowUp", "ArrowLeft"], does: "item before", run: () => this.#go(-1), typing: empty, repeats: true },
    ];
    if (this.choices.many) this.bindings = joined(this.bindings);
  }

  async refresh() {
    const { items } = await get("/api/review");
    const here = this.#items[this.#at]?.id;
    this.#items = items;
    this.#at = Math.max(
      0,
      items.findIndex((item) => item.id === here),
    );
    this.#draw();
  }

  #go(step) {
    this.#at = Math.min(Math.max(this.#at + step, 0), Math.max(this.#items.length - 1, 0));
    this.#draw();
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  #draw() {
    const item = this.#items[this.#at];
    this.list.replaceChildren(
      ...this.#items.map((one, i) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              class: "queued",
              "aria-current": i === this.#at ? "true" : null,
              onclick: () => this.#go(i - this.#at),
            },
            h("span", { class: "picture" }, small(kinded(one))),
            h("span", { class: "why" }, why(one)),
          ),
        ),
      ),
    );
    this.choices.update(item?.proposed ?? null, Boolean(item));
    this.keep.hidden = !item?.proposed;
    if (item?.proposed) write(this.keep.querySelector(".label"), `Keep ${named(item.proposed)}`);
    const text = JSON.stringify(item ?? null);
    if (text === this.#drawn) return;
    this.#drawn = text;
    this.choices.clear();
    if (!item) {
      this.stage.replaceChildren(
        h(
          "div",
          { class: "nothing done" },
          h("h2", {}, "Nothing to review"),
          h("p", {}, "No disagreement, no flag. Items appear here when people disagree or flag one."),
        ),
      );
      this.votes.replaceChildren();
      return;
    }
    const image = new Image();
    const shown = kinded(item);
    if (shown.kind === "image") image.src = item.image;
    this.stage.replaceChildren(large(shown, image, false, () => this.#clock.start()));
    this.votes.replaceChildren(
      h("h2", {}, item.id),
      h(
        "ul",
        {},
        item.votes.map((vote) =>
          h(
            "li",
            {},
            h("strong", { dir: "auto" }, vote.annotator),
            " answered ",
            h("span", { class: `says ${vote.answer.kind}` }, named(vote.answer)),
          ),
        ),
      ),
      h(
        "ul",
        {},
        item.flags.map((flag) =>
          h(
            "li",
            { class: "flagged" },
            h("strong", { dir: "auto" }, flag.annotator),
            flag.note ? [" flagged it: ", h("q", { dir: "auto" }, flag.note)] : " flagged it",
          ),
        ),
      ),
    );
  }

  async #settle(answer) {
    const item = this.#items[this.#at];
    if (!item) return;
    try {
      await post("/api/answers", {
        answers: [{ item: item.id, answer, seconds: this.#clock.seconds(), view: "review", key: newKey() }],
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.say(`Not saved: ${error.message}`);
      return;
    }
    this.#items = this.#items.filter((other) => other.id !== item.id);
    this.#go(0);
    this.say(`Settled: ${named(answer)}. ${count(this.#items.length, "item")} left.`);
  }

  #keep() {
    const item = this.#items[this.#at];
    if (item?.proposed) this.#settle(item.proposed);
  }
}

// Enter has two meanings above ten classes: with something typed it chooses the class found, else it keeps.
function joined(bindings) {
  const [find, keep] = bindings.filter((binding) => binding.keys.includes("Enter"));
  const both = {
    ...find,
    does: `${find.does}; with nothing typed, ${keep.does}`,
    run: (event) => (event.target.value ? find : keep).run(event),
  };
  return [...bindings.filter((binding) => binding !== find && binding !== keep), both];
}

function kinded(item) {
  return { ...item, kind: item.text !== null && item.text !== undefined ? "text" : item.image ? "image" : "vector" };
}

function why(item) {
  const answers = new Set(item.votes.map((vote) => named(vote.answer)));
  const parts = [];
  if (answers.size > 1) parts.push([...answers].join(" / "));
  if (item.flags.length > 0) parts.push(item.flags[0].note || "flagged");
  return parts.join(" · ") || named(item.votes[0]?.answer ?? { kind: "skip" });
}

open(async (main) => {
  const [campaign, state] = await Promise.all([get("/api/campaign"), get("/api/state")]);
  const top = header(campaign);
  const toast = toaster();
  const keys = new Keys();
  document.title = `${campaign.name} · review`;
  document.querySelector("header.top")?.remove();
  document.body.prepend(top.element);
  document.body.append(toast.element);
  top.update(state.progress, state.round);
  top.saving("up to date", "saved");
  const review = new Review(campaign, toast.say);
  await review.refresh();
  main.replaceChildren(h("h1", { class: "unseen" }, `${campaign.name}: review`), review.element);
  keys.bind(review.bindings, review.choices.typed);

  async function poll() {
    try {
      if (!document.hidden) await review.refresh();
      top.saving("up to date", "saved");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      top.saving("offline", "offline");
    }
    setTimeout(poll, POLL);
  }
  setTimeout(poll, POLL);
});
