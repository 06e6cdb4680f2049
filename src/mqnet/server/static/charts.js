// Small drawings in SVG. Each takes numbers and returns a figure that says the same to the eye and, as a table, to the ear.

import { h, svg } from "./dom.js";
import { NONE, figure, percent } from "./words.js";

const WIDTH = 520;

/** A figure around a drawing, with its numbers as a table one can unfold. */
function framed(drawing, title, heads, rows) {
  const table = h(
    "table",
    {},
    h("caption", { class: "unseen" }, title),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((head) => h("th", { scope: "col" }, head)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map(([first, ...rest]) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, first),
          rest.map((cell) => h("td", {}, cell)),
        ),
      ),
    ),
  );
  return h(
    "figure",
    { class: "chart" },
    drawing,
    h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll" }, table)),
  );
}

/** Colours by name; a legend reads without them, for the shapes differ too. */
export function legend(entries) {
  return h(
    "ul",
    { class: "key" },
    entries.map(([style, text]) => h("li", {}, h("span", { class: `swatch ${style}`, "aria-hidden": "true" }), text)),
  );
}

function steps(top, n = 4) {
  const rough = top / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough),
  );
  return Array.from({ length: Math.ceil(top / step) + 1 }, (_, i) => i * step);
}

/** What each round bought: known classes below, none of these above, skipped on top. */
export function roundBars(rounds) {
  const [height, left, foot, top] = [240, 36, 26, 10];
  const parts = [
    ["known", "n_known"],
    ["none", "n_ood"],
    ["skip", "n_skipped"],
  ];
  const ticks = steps(Math.max(1, ...rounds.map((r) => r.n_known + r.n_ood + r.n_skipped)));
  const highest = ticks.at(-1);
  const y = (value) => height - foot - ((height - foot - top) * value) / highest;
  const slot = (WIDTH - left) / Math.max(rounds.length, 6);
  const every = Math.ceil(rounds.length / 14);
  const drawing = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "img",
    "aria-label": "Answers per round: known classes, none of these, skipped",
  });
  for (const tick of ticks) {
    drawing.append(
      svg("line", { class: "rule", x1: left, x2: WIDTH, y1: y(tick), y2: y(tick) }),
      svg("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, figure(tick)),
    );
  }
  rounds.forEach((round, i) => {
    const x = left + slot * (i + 0.5);
    const width = Math.min(44, slot * 0.7);
    let below = 0;
    for (const [style, name] of parts) {
      if (!round[name]) continue;
      drawing.append(
        svg(
          "rect",
          {
            class: style,
            x: x - width / 2,
            width,
            y: y(below + round[name]),
            height: Math.max(0, y(below) - y(below + round[name]) - 1),
          },
          svg(
            "title",
            {},
            `Round ${round.round}: ${round[name]} ${style === "known" ? "of known classes" : style === "none" ? NONE : "skipped"}`,
          ),
        ),
      );
      below += round[name];
    }
    if (i % every === 0)
      drawing.append(svg("text", { class: "tick", x, y: height - 8, "text-anchor": "middle" }, String(round.round)));
  });
  return framed(
    drawing,
    "Answers per round",
    ["Round", "Known classes", "None of these", "Skipped", "Spent"],
    rounds.map((r) => [
      String(r.round),
      figure(r.n_known),
      figure(r.n_ood),
      figure(r.n_skipped),
      `${figure(r.spent)} of ${figure(r.budget)}`,
    ]),
  );
}

/** A value between its bounds on a line from `low` to `high`. */
export function interval({ value, low, high }, from = 0, to = 1) {
  const x = (number) => 6 + (208 * (Math.min(Math.max(number, from), to) - from)) / (to - from || 1);
  return svg(
    "svg",
    { class: "interval", viewBox: "0 0 220 20", "aria-hidden": "true" },
    svg("line", { class: "rule", x1: 6, x2: 214, y1: 10, y2: 10 }),
    low !== null && svg("line", { class: "reach", x1: x(low), x2: x(high), y1: 10, y2: 10 }),
    svg("circle", { class: "dot", cx: x(value), cy: 10, r: 5 }),
  );
}

/** How many answers each class has. */
export function classBars(counts) {
  const entries = Object.entries(counts);
  const most = Math.max(1, ...entries.map(([, n]) => n));
  return h(
    "table",
    { class: "bars" },
    h(
      "thead",
      { class: "unseen" },
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Class"),
        h("th", { scope: "col" }, "Share of the largest"),
        h("th", { scope: "col" }, "Answers"),
      ),
    ),
    h(
      "tbody",
      {},
      entries.map(([name, n]) =>
        h(
          "tr",
          {},
          h("th", { scope: "row", dir: "auto" }, name),
          h(
            "td",
            { class: "grow" },
            svg(
              "svg",
              { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
              svg("rect", { class: "known", width: (100 * n) / most, height: 8 }),
            ),
          ),
          h("td", { class: "number" }, figure(n)),
        ),
      ),
    ),
  );
}

/** The line segments along which a function on a grid takes a value, as an SVG path. */
export function contour(xs, ys, z, level) {
  let path = "";
  const between = (a, b, za, zb) => a + ((level - za) / (zb - za)) * (b - a);
  for (let j = 0; j + 1 < ys.length; j += 1) {
    for (let i = 0; i + 1 < xs.length; i += 1) {
      const [a, b, c, d] = [z[j][i], z[j][i + 1], z[j + 1][i + 1], z[j + 1][i]];
      const cuts = [];
      if (a > level !== b > level) cuts.push([between(xs[i], xs[i + 1], a, b), ys[j]]);
      if (b > level !== c > level) cuts.push([xs[i + 1], between(ys[j], ys[j + 1], b, c)]);
      if (d > level !== c > level) cuts.push([between(xs[i], xs[i + 1], d, c), ys[j + 1]]);
      if (a > level !== d > level) cuts.push([xs[i], between(ys[j], ys[j + 1], a, d)]);
      for (let k = 0; k + 1 < cuts.length; k += 2) {
        path += `M${cuts[k].map((v) => v.toFixed(1))}L${cuts[k + 1].map((v) => v.toFixed(1))}`;
      }
    }
  }
  return path;
}

function heat(z, colour) {
  const [low, high] = bounds(z.flat());
  const canvas = h("canvas", { width: z[0].length, height: z.length });
  const context = canvas.getContext("2d");
  context.fillStyle = colour;
  z.forEach((row, j) =>
    row.forEach((value, i) => {
      context.globalAlpha = 0.04 + (0.5 * (value - low)) / (high - low || 1);
      context.fillRect(i, z.length - 1 - j, 1, 1); // the image's first row is the top, the grid's the bottom
    }),
  );
  return canvas.toDataURL();
}

function bounds(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

/** The learned score over informativeness (across) and purity (up), the pool's items, and what was asked. */
export function landscape({ informativeness, purity, asked, answers, grid }) {
  const [left, foot, top, size] = [34, 38, 8, 380];
  const [xLow, xHigh] = grid ? bounds(grid.x) : bounds(informativeness);
  const [yLow, yHigh] = grid ? bounds(grid.y) : bounds(purity);
  const inside = (value, low, high) => Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
  const x = (value) => left + (WIDTH - left - 8) * inside(value, xLow, xHigh);
  const y = (value) => size - foot - (size - foot - top) * inside(value, yLow, yHigh);
  const drawing = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${size}`,
    role: "img",
    "aria-label": "Purity against informativeness of the pool's items; darker is asked first",
  });
  if (grid) {
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    drawing.append(
      svg("image", {
        href: heat(grid.z, colour),
        x: left,
        y: top,
        width: WIDTH - left - 8,
        height: size - foot - top,
        preserveAspectRatio: "none",
      }),
    );
    const sorted = grid.z.flat().sort((a, b) => a - b);
    for (let share = 0.1; share < 0.95; share += 0.1) {
      const level = sorted[Math.floor(share * sorted.length)];
      drawing.append(svg("path", { class: "contour", d: contour(grid.x.map(x), grid.y.map(y), grid.z, level) }));
    }
  }
  const bought = new Set(asked);
  const cloud = informativeness.map((_, i) => i).filter((i) => !bought.has(i));
  drawing.append(
    svg("path", {
      class: "cloud",
      d: cloud.map((i) => `M${x(informativeness[i]).toFixed(1)},${y(purity[i]).toFixed(1)}h0`).join(""),
    }),
  );
  asked.forEach((i, k) => drawing.append(point(answers[k], x(informativeness[i]), y(purity[i]))));
  for (const value of [Math.ceil(xLow), 0, Math.floor(xHigh)])
    drawing.append(
      svg("text", { class: "tick", x: x(value), y: size - foot + 16, "text-anchor": "middle" }, String(value)),
    );
  for (const value of [Math.ceil(yLow), 0, Math.floor(yHigh)])
    drawing.append(svg("text", { class: "tick", x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  drawing.append(
    svg("text", { class: "axis", x: (left + WIDTH) / 2, y: size - 4, "text-anchor": "middle" }, "informativeness →"),
    svg(
      "text",
      {
        class: "axis",
        x: 12,
        y: (size - foot) / 2,
        "text-anchor": "middle",
        transform: `rotate(-90 12 ${(size - foot) / 2})`,
      },
      "purity →",
    ),
  );
  const middle = (kind, values) => {
    const chosen = asked.filter((_, k) => answers[k] === kind).map((i) => values[i]);
    return chosen.length === 0 ? "none" : figure(chosen.reduce((sum, v) => sum + v, 0) / chosen.length);
  };
  return framed(
    drawing,
    "Mean place of what was asked, in deviations from the pool's mean",
    ["Answer", "Items", "Informativeness", "Purity"],
    [
      ["known", "known class"],
      ["ood", NONE],
      ["skip", "skipped"],
    ].map(([kind, name]) => [
      name,
      figure(answers.filter((a) => a === kind).length),
      middle(kind, informativeness),
      middle(kind, purity),
    ]),
  );
}

function point(kind, cx, cy) {
  if (kind === "known") return svg("circle", { class: "known", cx, cy, r: 4 });
  if (kind === "ood") return svg("path", { class: "none cross", d: `M${cx - 3.5},${cy - 3.5}l7,7m0,-7l-7,7` });
  return svg("rect", { class: "skip", x: cx - 3, y: cy - 3, width: 6, height: 6 });
}

/** A value with its bounds in words. */
export function bounded({ value, low, high }, show = percent) {
  return low === null || low === undefined
    ? show(value)
    : `${show(value)} (95% between ${show(low)} and ${show(high)})`;
}
