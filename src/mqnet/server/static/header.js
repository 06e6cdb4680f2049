// The top of every page: the campaign's name, where one can go, the budget, and whether the answers are saved.

import { h, write } from "./dom.js";
import { ofBudget } from "./words.js";

const PAGES = [
  ["/", "Label", "annotator"],
  ["/dashboard", "Dashboard", "annotator"],
  ["/review", "Review", "owner"],
  ["/people", "People", "owner"],
];

/** The header for a campaign; `update(progress, round)` and `saving(text, tone)` keep it true. */
export function header(campaign) {
  const here = location.pathname;
  const links = PAGES.filter(([, , role]) => role !== "owner" || campaign.user.role === "owner").map(([href, text]) =>
    h("a", { href, "aria-current": href === here ? "page" : null }, text),
  );
  const meters = h("div", { class: "meters" });
  const round = meter("Round");
  const budget = meter("Budget");
  meters.append(round.element, budget.element);
  const saved = h("p", { class: "saving", role: "status" });
  const element = h(
    "header",
    { class: "top" },
    h("strong", { class: "project", title: campaign.name }, campaign.name),
    h("nav", { "aria-label": "Pages" }, links),
    meters,
    saved,
    h(
      "span",
      { class: "who", title: `Signed in as ${campaign.user.name} (${campaign.user.role})` },
      campaign.user.name,
    ),
  );
  return {
    element,
    update(progress, number) {
      round.update(`Round ${number}`, progress.round_spent, progress.round_budget, campaign.budget_unit);
      budget.update("Budget", progress.spent, progress.total_budget, campaign.budget_unit);
    },
    saving(text, tone) {
      write(saved, text);
      saved.className = `saving ${tone}`;
    },
  };
}

function meter(name) {
  const label = h("span", {});
  const bar = h("progress", { max: "1", value: "0", "aria-label": name });
  return {
    element: h("div", { class: "meter" }, label, bar),
    update(title, spent, total, unit) {
      write(label, `${title}: ${ofBudget(spent, total, unit)} spent`);
      bar.hidden = !total;
      bar.max = total || 1;
      bar.value = Math.min(spent, bar.max);
      bar.setAttribute("aria-label", label.textContent);
    },
  };
}
