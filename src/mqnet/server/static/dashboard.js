// The dashboard: what was bought, what it is worth, and what another round would buy. What is not known is said.

import { ApiError, get } from "./api.js";
import { classBars, interval, landscape, legend, roundBars } from "./charts.js";
import { h } from "./dom.js";
import { header } from "./header.js";
import { small } from "./item.js";
import { open } from "./page.js";
import { situation } from "./situation.js";
import { NONE, count, duration, figure, ofBudget, percent, sentence } from "./words.js";

const POLL = 5000; // milliseconds
const EARLY = "The first estimates come after the first round's training.";

/** The card of one figure: its value, its bounds, and how it was found. Digits the bounds make idle are left out. */
function estimate(title, found, { show = share, scale = [0, 1], extra = null, missing = EARLY } = {}) {
  const known = there(found?.value);
  const bounds = known && there(found.low) && there(found.high);
  const width = bounds ? found.high - found.low : 0;
  return card(
    title,
    known ? h("p", { class: "value" }, show(found.value, width)) : h("p", { class: "value unknown" }, "not known yet"),
    bounds && h("p", { class: "bounds" }, `95% interval: ${show(found.low, width)} to ${show(found.high, width)}`),
    known && scale && interval({ low: null, high: null, ...found }, ...scale),
    known && extra,
    h("p", { class: "how" }, sentence(found?.how ?? missing)),
  );
}

function there(value) {
  return value !== null && value !== undefined;
}

function share(value, width) {
  return percent(value, width > 0.05 ? 0 : 1);
}

function amount(value, width) {
  return figure(width > 5 ? Math.round(value) : value);
}

function card(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), children);
}

function missing(text) {
  return h("p", { class: "missing" }, text);
}

function budget({ spent, total_budget: total, rounds }, { campaign, state }) {
  const unit = campaign.budget_unit;
  const bar = h("progress", { "aria-label": "Budget spent", max: total || 1, value: Math.min(spent, total || 1) });
  const sums = rounds.reduce((all, r) => [all[0] + r.n_known, all[1] + r.n_ood, all[2] + r.n_skipped], [0, 0, 0]);
  return card(
    "Spent",
    h("p", { class: "value" }, ofBudget(spent, total, unit)),
    h("p", { class: "bounds" }, unit === "minutes" ? "of people's time" : "labels, at their costs"),
    total ? bar : null,
    h(
      "p",
      { class: "how" },
      `${figure(sums[0])} of known classes, ${figure(sums[1])} ${NONE}, ${figure(sums[2])} skipped; now in round ${state.round}.`,
    ),
  );
}

function saved(found, { campaign }) {
  const unit = campaign.budget_unit === "minutes" ? " min" : "";
  const show = (value, width) => `${amount(value, width)}${unit}`;
  const extra =
    there(found?.wasted) && there(found.random)
      ? h(
          "p",
          { class: "bounds" },
          `Spent on junk: ${show(found.wasted, 10)}. Random labelling: about ${show(found.random, 10)}.`,
        )
      : null;
  return estimate("Saved against random", found, { show, scale: null, extra });
}

function stopping(insight) {
  if (!insight) return null;
  const { text, gain } = insight.stopping;
  return h(
    "section",
    { class: "card hint" },
    h("h2", {}, "What another round would buy"),
    h("p", { class: "lead" }, sentence(text)),
    // without a figure the sentence has said why already
    gain.value === null ? null : h("p", { class: "how" }, sentence(gain.how)),
  );
}

function perRound({ rounds }) {
  if (rounds.length === 0) return card("Bought per round", missing("Nothing has been answered yet."));
  return card(
    "Bought per round",
    legend([
      ["known", "known class"],
      ["none", NONE],
      ["skip", "skipped"],
    ]),
    roundBars(rounds),
  );
}

function plane(insight) {
  const found = insight?.landscape;
  if (!found) {
    const why = insight ? "This strategy learns no weighing of purity against informativeness." : EARLY;
    return card("What the ranking has learned", missing(why));
  }
  const text = slopeText(found.slope);
  return card(
    "What the ranking has learned",
    legend([
      ["known dot", "known class"],
      ["none cross", NONE],
      ["skip dot", "skipped"],
      ["cloud dot", "not asked"],
    ]),
    landscape(found),
    h(
      "p",
      { class: "how" },
      `Each point is an item of the pool; the deeper the colour, the sooner it is asked. ${text}`,
    ),
  );
}

function slopeText(slope) {
  if (slope === null || slope === undefined) return "";
  if (!Number.isFinite(slope)) return "Purity does not count at present.";
  const weight = Math.abs(slope);
  if (weight < 0.05) return "Purity decides almost alone: it avoids junk.";
  return `One deviation more of informativeness outweighs ${figure(weight)} of purity.`;
}

function wanted(title, lines, items, empty) {
  if (!lines || lines.length === 0) return card(title, missing(empty));
  return card(
    title,
    h(
      "ul",
      { class: "wanted" },
      lines.map(({ item, reason }) => {
        const shown = items.get(item) ?? { id: item, kind: "vector", text: null };
        return h("li", {}, h("div", { class: "picture", title: item }, small(shown, 256)), h("p", {}, reason));
      }),
    ),
  );
}

function balance({ class_counts: counts }) {
  const none = Object.values(counts).every((n) => n === 0);
  return card(
    "Answers per class",
    none
      ? missing("No item of a known class yet.")
      : h(
          "div",
          { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Answers per class" },
          classBars(counts),
        ),
  );
}

function times({ seconds }) {
  const names = {
    known: "known class",
    ood: NONE,
    skip: "skipped",
    focus: "one by one",
    grid: "in the grid",
    review: "in review",
  };
  const rows = [
    ...["known", "ood", "skip"].map((kind) => [kind, seconds?.[kind]]),
    ...Object.entries(seconds?.by_view ?? {}),
  ].filter(([, found]) => found && found.n > 0 && found.median !== null);
  if (rows.length === 0) return card("Time per answer", missing("No answer was timed yet."));
  return card(
    "Time per answer",
    table(
      ["", "Median", "Answers"],
      rows.map(([name, { median, n }]) => [names[name] ?? name, duration(median), figure(n)]),
    ),
    h(
      "p",
      { class: "how" },
      "From an item in view to its answer; pauses and hidden pages are left out. A grid page's time is shared by its items.",
    ),
  );
}

function people({ annotators, agreement, n_disagreements: disagreements, n_flags: flags }, { campaign }) {
  const rows = annotators.map((a) => [
    a.name,
    figure(a.n),
    a.median_seconds === null ? "not timed" : duration(a.median_seconds),
    a.agreement === null ? "–" : percent(a.agreement),
  ]);
  const together =
    agreement === null || agreement === undefined
      ? campaign.overlap > 1
        ? "No item has two answers yet, so agreement is not known."
        : "Each item goes to one person, so agreement is not measured."
      : `Where several people answered one item, ${percent(agreement)} of the answers agree.`;
  const open = [disagreements > 0 && count(disagreements, "disagreement"), flags > 0 && count(flags, "flag")].filter(
    Boolean,
  );
  return card(
    "People",
    rows.length === 0
      ? missing("Nobody has answered yet.")
      : table(["Who", "Answers", "Median time", "Agreement"], rows),
    h("p", { class: "how" }, together),
    open.length > 0 && campaign.user.role === "owner"
      ? h("p", {}, h("a", { class: "plain", href: "/review" }, `Review ${open.join(" and ")}`))
      : h(
          "p",
          { class: "how" },
          open.length > 0 ? `${open.join(" and ")} wait for the owner.` : "Nothing waits for review.",
        ),
  );
}

function table(heads, rows) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => (head === "" ? h("td", {}) : h("th", { scope: "col" }, head))),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([first, ...rest]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", dir: "auto" }, first),
            rest.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );
}

async function shownItems(insight, known) {
  const lines = [...(insight?.most_wanted ?? []), ...(insight?.least_wanted ?? [])];
  const asked = lines.filter(({ item }) => !known.has(item));
  await Promise.all(
    asked.map(async ({ item }) => {
      try {
        known.set(item, await get(`/api/items/${encodeURIComponent(item)}`));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error; // an item that cannot be shown is named instead
      }
    }),
  );
  return known;
}

function draw(data, context, items) {
  const { insight } = data;
  return [
    h("h1", { class: "unseen" }, `${context.campaign.name}: dashboard`),
    h(
      "div",
      { class: "figures" },
      budget(data, context),
      estimate("Accuracy", insight?.accuracy),
      estimate("Junk in the pool", insight?.ood_share),
      estimate("Known items left", insight?.known_left, { show: amount, scale: null }),
      saved(insight?.saved, context),
    ),
    stopping(insight),
    h(
      "div",
      { class: "cards" },
      h("div", { class: "stack" }, perRound(data), balance(data)),
      plane(insight),
      h("div", { class: "stack last" }, times(data), people(data, context)),
      wanted("Wanted most", insight?.most_wanted, items, EARLY),
      wanted("Wanted least", insight?.least_wanted, items, EARLY),
    ),
  ].filter(Boolean);
}

open(async (main) => {
  const campaign = await get("/api/campaign");
  const top = header(campaign);
  document.title = `${campaign.name} · dashboard`;
  document.querySelector("header.top")?.remove();
  document.body.prepend(top.element);
  const items = new Map();
  const body = h("div", { class: "dashboard" });
  const now = h("p", { class: "banner now", role: "status", hidden: true });
  main.replaceChildren(now, body);
  let drawn = "";

  async function refresh() {
    const [data, state] = await Promise.all([get("/api/dashboard"), get("/api/state")]);
    top.update(state.progress, state.round);
    top.saving("up to date", "saved");
    const found = situation({ state, campaign, hasItem: true, reachable: true });
    now.hidden = !found;
    if (found && now.textContent !== found.title) now.textContent = found.title;
    const text = JSON.stringify([data, state.round]);
    if (text === drawn) return;
    const { insight } = data;
    await shownItems(insight, items);
    const unfolded = [...body.querySelectorAll("details")].map((details) => details.open);
    body.replaceChildren(...draw(data, { campaign, state }, items));
    body.querySelectorAll("details").forEach((details, i) => (details.open = unfolded[i] ?? false));
    drawn = text;
  }

  async function poll() {
    try {
      if (!document.hidden) await refresh();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      top.saving("offline: figures may be old", "offline");
    }
    setTimeout(poll, POLL);
  }

  await refresh();
  setTimeout(poll, POLL);
});
