// The people page, for the owner: who may answer, a link for each, and taking it away.

import { ApiError, get, post } from "./api.js";
import { h } from "./dom.js";
import { header } from "./header.js";
import { open, toaster } from "./page.js";

const ROLES = [
  ["annotator", "annotator: answers"],
  ["owner", "owner: also reviews and adds people"],
];

class People {
  constructor(campaign, say) {
    this.campaign = campaign;
    this.say = say;
    this.rows = h("tbody", {});
    this.name = h("input", {
      type: "text",
      id: "name",
      required: true,
      maxlength: "80",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.role = h(
      "select",
      { id: "role" },
      ROLES.map(([value, text]) => h("option", { value }, text)),
    );
    this.wrong = h("p", { class: "wrong", role: "alert" });
    this.link = h("div", { class: "link", role: "status" });
    this.element = h(
      "div",
      { class: "wide people" },
      h("h1", {}, "People of this campaign"),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Add somebody"),
        h(
          "form",
          { class: "add", onsubmit: (event) => this.#add(event) },
          h("label", { for: "name" }, "Name", this.name),
          h("label", { for: "role" }, "Role", this.role),
          h("button", { class: "confirm" }, "Add, and make a link"),
        ),
        this.wrong,
        this.link,
      ),
      h(
        "section",
        { class: "card" },
        h("h2", {}, "Who is in"),
        h(
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
                ["Name", "Role", "Since", ""].map((head) =>
                  head === "" ? h("td", {}) : h("th", { scope: "col" }, head),
                ),
              ),
            ),
            this.rows,
          ),
        ),
      ),
    );
  }

  async refresh() {
    const { people } = await get("/api/people");
    this.rows.replaceChildren(...people.map((person) => this.#row(person)));
  }

  #row({ name, role, created_at: since, revoked }) {
    const self = name === this.campaign.user.name;
    return h(
      "tr",
      { class: revoked ? "revoked" : null },
      h("th", { scope: "row", dir: "auto" }, self ? `${name} (you)` : name),
      h("td", {}, role),
      h("td", {}, since ? new Date(1000 * since).toLocaleDateString(undefined, { dateStyle: "medium" }) : ""),
      h(
        "td",
        { class: "end" },
        revoked
          ? "link revoked"
          : self
            ? ""
            : h(
                "button",
                {
                  type: "button",
                  class: "plain small",
                  "aria-label": `Revoke the link of ${name}`,
                  onclick: () => this.#askRevoke(name),
                },
                "Revoke",
              ),
      ),
    );
  }

  async #add(event) {
    event.preventDefault();
    const name = this.name.value.trim();
    if (name === "") return;
    this.wrong.textContent = "";
    let made;
    try {
      made = await post("/api/people", { name, role: this.role.value });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.wrong.textContent = error.message;
      this.name.focus();
      return;
    }
    this.name.value = "";
    this.#showLink(made);
    await this.refresh();
  }

  #showLink({ name, link }) {
    const field = h("input", {
      type: "text",
      readonly: true,
      value: link,
      "aria-label": `Link for ${name}`,
      onfocus: () => field.select(),
    });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(link);
        this.say("Copied.");
      } catch {
        field.focus(); // no clipboard on plain http: the link is selected, to be copied by hand
        this.say("Press Ctrl+C to copy.");
      }
    };
    this.link.replaceChildren(
      h(
        "p",
        {},
        h("strong", { dir: "auto" }, name),
        " signs in with this link. It is shown only now, for only a hash of it is stored: send it to nobody else.",
      ),
      h("div", { class: "row" }, field, h("button", { type: "button", class: "plain", onclick: copy }, "Copy")),
    );
    field.focus();
  }

  #askRevoke(name) {
    const dialog = h(
      "dialog",
      { "aria-labelledby": "revoke-title" },
      h(
        "form",
        { method: "dialog" },
        h("h2", { id: "revoke-title" }, `Revoke the link of ${name}?`),
        h("p", {}, "The link stops working at once. The answers stay."),
        h(
          "div",
          { class: "row" },
          h("button", { class: "confirm", value: "revoke" }, "Revoke"),
          h("button", { class: "plain", value: "", autofocus: true }, "Cancel"),
        ),
      ),
    );
    dialog.addEventListener("close", async () => {
      dialog.remove();
      if (dialog.returnValue !== "revoke") return;
      try {
        await post(`/api/people/${encodeURIComponent(name)}/revoke`, {});
        this.say(`${name} cannot sign in any more.`);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.say(error.message);
      }
      await this.refresh();
    });
    document.body.append(dialog);
    dialog.showModal();
  }
}

open(async (main) => {
  const [campaign, state] = await Promise.all([get("/api/campaign"), get("/api/state")]);
  const top = header(campaign);
  const toast = toaster();
  document.title = `${campaign.name} · people`;
  document.querySelector("header.top")?.remove();
  document.body.prepend(top.element);
  document.body.append(toast.element);
  top.update(state.progress, state.round);
  top.saving("up to date", "saved");
  const people = new People(campaign, toast.say);
  await people.refresh();
  main.replaceChildren(people.element);
});
