// A small form: flag an item for review, with a note, or take the flag away.

import { h } from "./dom.js";

/** Opens the form for an item; Enter flags, Esc does nothing. */
export function askFlag(session, item) {
  const there = session.flagged.has(item.id);
  const note = h("input", {
    type: "text",
    id: "flag-note",
    maxlength: "500",
    autocomplete: "off",
    value: session.flagged.get(item.id) ?? "",
  });
  const dialog = h(
    "dialog",
    { class: "flag", "aria-labelledby": "flag-title", onclose: () => dialog.remove() },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "flag-title" }, "Flag for review"),
      h("label", { for: "flag-note" }, "Note for the owner (may stay empty)"),
      note,
      h(
        "div",
        { class: "row" },
        h("button", { class: "confirm", value: "flag" }, there ? "Save the note" : "Flag"),
        there && h("button", { class: "plain", value: "remove" }, "Take the flag away"),
        h("button", { class: "plain", value: "", formnovalidate: true }, "Cancel"),
      ),
    ),
  );
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "flag") session.flag(item, true, note.value.trim());
    if (dialog.returnValue === "remove") session.flag(item, false, "");
  });
  document.body.append(dialog);
  dialog.showModal();
  note.focus();
}
