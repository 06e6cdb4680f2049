// What is going on, in one calm sentence or two: for the line above the item, and for the page when there is no item.

import { h } from "./dom.js";
import { count, duration, sentence } from "./words.js";

const GO_ON = "Go on: early answers are kept, and cost nothing until a later round asks for the item.";

/** `{ tone, title, text, links }` for a state; `hasItem` says whether there is something to answer. */
export function situation({ state, campaign, hasItem, reachable }) {
  if (!reachable && !hasItem) {
    return { tone: "wait", title: "The server does not answer", text: "This page tries again by itself." };
  }
  const { progress, worker } = state;
  const eta = worker?.eta_seconds;
  const left = eta === null || eta === undefined ? "" : `, about ${duration(eta)} left`;
  switch (state.state) {
    case "done":
      return {
        tone: "done",
        title: "The budget is spent",
        text: `${count(progress.n_known, "item")} of known classes, ${progress.n_ood} none of these. Thank you.`,
        links: [["/dashboard", "See what came of it"]],
      };
    case "stopped": {
      const text = sentence(state.message) || "The loop does not run at present.";
      if (hasItem) return { tone: "calm", title: "No round is open", text: `${text} ${GO_ON}` };
      return { tone: "stop", title: "No round is open", text };
    }
    case "early":
    case "training": {
      const title = `The next round is being prepared${left}`;
      if (hasItem) return { tone: "calm", title, text: GO_ON };
      return { tone: "wait", title, text: "The next items come by themselves. Nothing to do until then." };
    }
    default:
      if (hasItem) return null;
      return {
        tone: "wait",
        title: "Nothing for you right now",
        text:
          campaign.overlap > 1
            ? "The other items of this round are with other annotators, or their answers differ and wait for review."
            : "The other items of this round are with other annotators. If one comes free, it appears here.",
        links: campaign.user.role === "owner" && campaign.overlap > 1 ? [["/review", "Review"]] : [],
      };
  }
}

/** The line above the item; hidden when there is nothing to say. */
export function banner() {
  const element = h("p", { class: "banner", role: "status", hidden: true });
  return {
    element,
    update(found) {
      const text = found ? [found.title, found.text].filter(Boolean).join(". ") : "";
      element.hidden = !found;
      if (element.dataset.text === text) return;
      element.dataset.text = text;
      element.className = `banner ${found?.tone ?? ""}`;
      element.replaceChildren(...(found ? [h("strong", {}, found.title), found.text ? ` ${found.text}` : ""] : []));
    },
  };
}

/** What stands in an item's place when there is none. */
export function nothing(found) {
  return h(
    "div",
    { class: `nothing ${found.tone}` },
    found.tone === "wait" ? h("span", { class: "pulse", "aria-hidden": "true" }) : null,
    h("h2", {}, found.title),
    h("p", {}, found.text),
    (found.links ?? []).map(([href, text]) => h("a", { class: "plain", href }, text)),
  );
}
