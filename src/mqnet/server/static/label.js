// The labelling page: puts session, views, keys and header together.

import { ApiError } from "./api.js";
import { h } from "./dom.js";
import { FocusView } from "./focus.js";
import { askFlag } from "./flag.js";
import { GridView } from "./grid.js";
import { header } from "./header.js";
import { Keys } from "./keys.js";
import { open, toaster, trouble } from "./page.js";
import { Session } from "./session.js";

const POLL = 2000; // milliseconds

open(async (main) => {
  const session = await Session.begin();
  const top = header(session.campaign);
  const toast = toaster();
  const keys = new Keys();
  document.title = `${session.campaign.name} · label`;
  document.querySelector("header.top")?.remove();
  document.body.prepend(top.element);
  document.body.append(toast.element);

  const openFlag = (item) => askFlag(session, item);
  const focus = new FocusView(session, { openGrid: () => turn(grid), openFlag });
  const grid = new GridView(session, { openFocus: () => turn(focus), openFlag });
  const title = h("h1", { class: "unseen" }, `${session.campaign.name}: label`);
  let view = null;

  function turn(to) {
    view = to;
    history.replaceState(null, "", to === grid ? "#grid" : location.pathname);
    main.replaceChildren(title, to.element);
    keys.bind(to.bindings, to.choices?.typed ?? null);
    if (to === focus) session.wanted = 11;
    to.show();
  }

  function update() {
    top.update(session.state.progress, session.state.round);
    const { state, waiting } = session.outbox;
    if (state === "offline") top.saving(`offline, ${waiting} waiting`, "offline");
    else if (!session.reachable) top.saving("offline", "offline");
    else top.saving(state, state === "saving" ? "pending" : "saved");
    view?.update();
  }

  const signedOut = () => main.replaceChildren(trouble(new ApiError(401, ""), session.outbox.waiting));
  session.addEventListener("moved", () => view?.show());
  session.addEventListener("change", update);
  session.addEventListener("said", ({ detail }) => toast.say(detail));
  session.addEventListener("signedout", signedOut);
  session.outbox.addEventListener("signedout", signedOut);

  const named = () => (location.hash === "#grid" ? grid : focus);
  window.addEventListener("hashchange", () => turn(named()));
  turn(named());
  update();

  async function poll() {
    if (!document.hidden) await session.poll();
    setTimeout(poll, POLL);
  }
  setTimeout(poll, POLL);
});
