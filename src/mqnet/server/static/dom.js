// Elements from tag, attributes and children. Strings become text nodes: nothing a user wrote is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: `h("button", { class: "answer", onclick: run }, "cat")`. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a text only where it differs, so that a live region speaks once. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The element with this id, which the page must have. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element '${id}'`);
  return found;
}

/** A key as it is drawn on a key cap. */
export function cap(key) {
  return h("kbd", { "aria-hidden": "true" }, key);
}
