// An item as it is looked at: an image, a text, or, for a pool of vectors, its name alone.

import { imageAt } from "./api.js";
import { h } from "./dom.js";

const TINY = 128; // pixels; below this an image is enlarged in crisp squares

/** The full view of an item. `image` is the element that already loads it; `ready` is called once it can be judged. */
export function large(item, image, closer, ready) {
  if (item.kind === "text") {
    ready();
    return h(
      "div",
      { class: "reading", tabindex: "0", role: "region", "aria-label": "Text to label", dir: "auto" },
      item.text,
    );
  }
  if (item.kind !== "image") {
    ready();
    return h("div", { class: "reading bare" }, item.id);
  }
  const frame = h("div", { class: closer ? "frame closer" : "frame" }, image);
  image.alt = "Image to label";
  const settle = () => {
    frame.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) < TINY);
    ready();
  };
  const broken = () => {
    frame.replaceChildren(
      h("p", { class: "nothing" }, "This image cannot be shown. Skip it; its owner will see it among the skipped."),
    );
    ready();
  };
  if (image.complete) (image.naturalWidth > 0 ? settle : broken)();
  else {
    image.addEventListener("load", settle, { once: true });
    image.addEventListener("error", broken, { once: true });
  }
  return frame;
}

/** A small view of an item; `size` in pixels. */
export function small(item, size = 96) {
  if (item.kind === "text" || (item.text !== null && item.text !== undefined)) {
    return h("span", { class: "thumb words", dir: "auto" }, item.text);
  }
  if (item.kind === "vector") return h("span", { class: "thumb words" }, item.id);
  const image = h("img", {
    class: "thumb",
    src: imageAt(item.id, size),
    alt: "",
    loading: "lazy",
    decoding: "async",
    draggable: "false",
  });
  image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < size / 1.5));
  image.addEventListener("error", () => image.replaceWith(h("span", { class: "thumb words" }, "no image")));
  return image;
}
