// The buttons that answer: one per class, none of these, skip. They are made once and never move. Above ten classes, typing
// finds one: the matches are listed over the classes, which stay where they are.

import { h, write } from "./dom.js";
import { keyCap } from "./keys.js";
import { NONE, count } from "./words.js";

const DIGITS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"];
const FEW = DIGITS.length;

/** The classes a text finds: those that begin with it, then those with a word that does, then those that contain it. */
export function matches(classes, text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const rank = (name) => {
    const low = name.toLowerCase();
    if (low.startsWith(wanted)) return 0;
    if (low.split(/[\s_\-./]+/).some((word) => word.startsWith(wanted))) return 1;
    return low.replaceAll(/[\s_\-./]+/g, " ").includes(wanted) || low.includes(wanted) ? 2 : 3;
  };
  return [0, 1, 2].flatMap((place) => classes.filter((name) => rank(name) === place));
}

export class Choices {
  #classes;
  #choose;
  #buttons = new Map();
  #filter = null;
  #found = null;
  #told = null;

  /** @param choose called with an answer when a person gives one */
  constructor(classes, choose) {
    this.#classes = classes;
    this.#choose = choose;
    this.many = classes.length > FEW;
    const known = classes.map((name, i) =>
      this.#button(name, { kind: "known", name }, DIGITS[i] ?? null, "choice known"),
    );
    const list = h(
      "div",
      { class: this.many ? "classes many" : "classes", role: "group", "aria-label": "Known classes" },
      known,
    );
    const others = h(
      "div",
      { class: "others", role: "group", "aria-label": "Other answers" },
      this.#button(NONE, { kind: "ood" }, "x", "choice none", this.many),
      this.#button("skip", { kind: "skip" }, "s", "choice skip", this.many),
    );
    this.element = h("div", { class: "choices" }, this.many ? this.#finder(list) : list, others);
  }

  /** Key bindings for these answers. */
  get bindings() {
    const { many } = this;
    const empty = (field) => field.value === "";
    const digits = {
      keys: DIGITS.slice(0, many ? FEW : this.#classes.length),
      does: many ? "choose among the classes found; with nothing typed, the first ten" : "label as this class",
      run: ({ key }) => this.#digit(DIGITS.indexOf(key)),
      typing: () => true,
    };
    const typing = many && [
      {
        keys: ["Enter"],
        does: "type to find a class, then choose the first one found",
        run: () => this.#digit(0, true),
        typing: () => true,
      },
      { keys: ["Escape"], does: "clear what was typed", run: () => this.clear(), typing: () => true },
      { keys: ["/"], does: "put the cursor where classes are found", run: () => this.#filter.focus() },
    ];
    return [
      digits,
      ...(typing || []),
      { keys: ["x"], shift: many, does: NONE, run: () => this.#press({ kind: "ood" }), typing: empty },
      { keys: ["s"], shift: many, does: "skip: cannot tell", run: () => this.#press({ kind: "skip" }), typing: empty },
    ];
  }

  /** Hears that a letter was typed somewhere: it belongs to the filter. */
  get typed() {
    return this.many ? () => this.#filter.focus() : null;
  }

  /** Marks the answer that stands, if any, and whether answers can be given. */
  update(standing, usable) {
    const stands = standing && key(standing);
    for (const [name, button] of this.#buttons) {
      button.setAttribute("aria-pressed", String(name === stands));
      button.setAttribute("aria-disabled", String(!usable));
    }
  }

  /** Empties the filter. */
  clear() {
    if (!this.#filter) return;
    this.#filter.value = "";
    this.#filter.blur();
    this.#search();
  }

  #button(label, answer, shortcut, style, shift = false) {
    const button = h(
      "button",
      {
        type: "button",
        class: style,
        "aria-pressed": "false",
        "aria-keyshortcuts": shift ? `Shift+${shortcut}` : shortcut,
      },
      keyCap(shortcut, shift),
      h("span", { class: "label", title: label }, label),
    );
    button.addEventListener("click", () => this.#press(answer));
    this.#buttons.set(key(answer), button);
    return button;
  }

  #finder(list) {
    this.#filter = h("input", {
      type: "search",
      "data-keys": "",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "Type to find a class",
      "aria-label": "Type to find a class",
      oninput: () => this.#search(),
    });
    this.#found = h("div", { class: "found", hidden: true, role: "group", "aria-label": "Classes found" });
    this.#told = h("p", { class: "unseen", role: "status" });
    return h("div", { class: "finder" }, this.#filter, h("div", { class: "under" }, list, this.#found), this.#told);
  }

  #search() {
    const text = this.#filter.value;
    const names = matches(this.#classes, text).slice(0, FEW);
    const searching = text.trim() !== "";
    this.#found.hidden = !searching;
    this.#found.replaceChildren(
      ...names.map((name, i) =>
        h(
          "button",
          { type: "button", class: "choice known", onclick: () => this.#press({ kind: "known", name }) },
          keyCap(DIGITS[i]),
          h("span", { class: "label" }, name),
          i === 0 && keyCap("Enter"),
        ),
      ),
      names.length === 0 ? h("p", { class: "nothing" }, `No class contains "${text}".`) : "",
    );
    write(
      this.#told,
      searching
        ? `${count(names.length, "class").replace("classs", "classes")} found${names.length > 0 ? `; Enter chooses ${names[0]}` : ""}`
        : "",
    );
  }

  #digit(at, found = false) {
    const searching = this.many && this.#filter.value.trim() !== "";
    if (found && !searching) return;
    const names = searching ? matches(this.#classes, this.#filter.value) : this.#classes;
    if (at < names.length) this.#press({ kind: "known", name: names[at] });
  }

  #press(answer) {
    const button = this.#buttons.get(key(answer));
    if (button.getAttribute("aria-disabled") === "true") return;
    this.clear();
    button.classList.remove("chosen");
    requestAnimationFrame(() => button.classList.add("chosen")); // restarts the flash
    this.#choose(answer);
  }
}

function key(answer) {
  return answer.kind === "known" ? `known ${answer.name}` : answer.kind;
}
