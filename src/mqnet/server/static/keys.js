// One listener for all keys, and the overlay that lists them. A view binds what it understands; nothing else is listened to.
//
// A binding is { keys, does, run, shift, typing, hidden }: `does` is its line in the overlay, `shift` asks for Shift with a
// letter, `typing` lets it through while the cursor is in a field that says `data-keys`, and `over` names controls from which
// it takes Enter or Space.

import { cap, h } from "./dom.js";

const SWITCH = "mqnet.keys";
const LETTER = /^\p{L}$/u;
const NAMES = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Backspace: "⌫",
  Escape: "Esc",
  " ": "Space",
};

/** How a binding's keys are written. */
export function written(key, shift = false) {
  const name = NAMES[key] ?? key;
  return shift && LETTER.test(key) ? `⇧${name.toUpperCase()}` : name;
}

export class Keys {
  #bindings = [];
  #typed = null;
  #dialog;
  #on = read();

  constructor() {
    this.#dialog = h("dialog", { class: "help", "aria-labelledby": "help-title" });
    document.body.append(this.#dialog);
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Listens to these bindings instead of any before; `typed` hears a letter no binding wants. */
  bind(bindings, typed = null) {
    this.#bindings = [...bindings, { keys: ["?"], does: "these keys", run: () => this.help() }];
    this.#typed = typed;
  }

  /** Shows the overlay. */
  help() {
    if (this.#dialog.open) return this.#dialog.close();
    const rows = this.#bindings
      .filter((binding) => !binding.hidden)
      .map(({ keys, shift, does }) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            keys.map((key) => h("kbd", {}, written(key, shift))),
          ),
          h("td", {}, does),
        ),
      );
    const toggle = h("input", { type: "checkbox", checked: this.#on, onchange: () => this.#turn(toggle.checked) });
    this.#dialog.replaceChildren(
      h("h2", { id: "help-title" }, "Keys"),
      h("table", {}, h("tbody", {}, rows)),
      h("label", { class: "check" }, toggle, "Single keys answer (turn off for speech input or a screen reader)"),
      h("form", { method: "dialog" }, h("button", { class: "plain", autofocus: true }, "Close")),
    );
    this.#dialog.showModal();
    this.#dialog.scrollTop = 0; // on a phone the button in focus would have it begin at its end
  }

  #turn(on) {
    this.#on = on;
    try {
      localStorage.setItem(SWITCH, on ? "on" : "off");
    } catch {
      return; // it holds for this page, then
    }
  }

  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const field = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (field && field.dataset.keys === undefined) return;
    if (!this.#on && event.key !== "?" && event.key !== "Escape") return;
    const key = LETTER.test(event.key) ? event.key.toLowerCase() : event.key;
    const found = this.#bindings.find(
      (binding) =>
        binding.keys.includes(key) &&
        (!LETTER.test(key) || Boolean(binding.shift) === event.shiftKey) &&
        (!field || (binding.typing?.(field) ?? false)),
    );
    if (!found) {
      if (!field && LETTER.test(event.key)) this.#typed?.();
      return;
    }
    const control = event.target.closest?.("button, a, summary");
    if ((key === " " || key === "Enter") && control && !(found.over && control.matches(found.over))) return; // its own
    event.preventDefault();
    if (!event.repeat || found.repeats) found.run(event);
  }
}

function read() {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true;
  }
}

/** A key cap for a button, or nothing. */
export function keyCap(key, shift = false) {
  return key === null ? null : cap(written(key, shift));
}
