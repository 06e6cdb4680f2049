// What every page does first, and what it says when it cannot.

import { ApiError } from "./api.js";
import { byId, h } from "./dom.js";

/** Runs a page's start; what goes wrong is said where the page would have been. */
export async function open(start) {
  const main = byId("main");
  try {
    await start(main);
  } catch (error) {
    main.replaceChildren(trouble(error));
    if (error instanceof ApiError && error.passing) setTimeout(() => open(start), 3000);
    if (!(error instanceof ApiError)) throw error;
  }
}

/** A page in place of the one that could not be shown. */
export function trouble(error, waiting = 0) {
  const [title, text] = explained(error);
  const kept = waiting > 0 ? ` ${waiting} of your answers wait in this browser and are sent once you are back.` : "";
  return h("div", { class: "nothing stop" }, h("h1", {}, title), h("p", {}, text + kept));
}

function explained(error) {
  if (!(error instanceof ApiError)) return ["This page has a fault", `${error.name}: ${error.message}`];
  if (error.signedOut)
    return [
      "You are not signed in",
      "Open the personal link you were given, or ask the owner of this campaign for a new one.",
    ];
  if (error.status === 403)
    return ["This page is for the owner", "Ask the owner of this campaign, or go back to labelling."];
  if (error.passing) return ["The server does not answer", "This page tries again by itself."];
  return ["That did not work", error.message];
}

/** A line at the foot of the page that says something and goes. */
export function toaster() {
  const element = h("p", { class: "toast", role: "status" });
  let timer = null;
  return {
    element,
    say(text) {
      clearTimeout(timer);
      element.textContent = text;
      element.classList.add("shown");
      timer = setTimeout(() => element.classList.remove("shown"), 2500 + 40 * text.length);
    },
  };
}
