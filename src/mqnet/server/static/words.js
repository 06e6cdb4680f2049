// The same words everywhere: pool, known class, none of these, round, budget, spent.

export const NONE = "none of these";

/** An answer in words. */
export function named(answer) {
  if (answer.kind === "known") return answer.name;
  return answer.kind === "ood" ? NONE : "skipped";
}

/** Whether two answers say the same. */
export function same(a, b) {
  return a.kind === b.kind && (a.kind !== "known" || a.name === b.name);
}

/** A number with as many digits as a reader needs. */
export function figure(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 1 });
}

/** A share of one in per cent. */
export function percent(value, digits = 1) {
  return `${(100 * value).toLocaleString("en", { maximumFractionDigits: digits })}%`;
}

/** A sentence with its capital letter and its full stop. */
export function sentence(text) {
  if (!text) return "";
  const whole = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/** "12 of 50", with the unit where it is not labels. */
export function ofBudget(spent, total, unit) {
  const tail = unit === "minutes" ? " min" : "";
  return total === null || total === undefined
    ? `${figure(spent)}${tail}`
    : `${figure(spent)} of ${figure(total)}${tail}`;
}

/** Seconds as a person says them. */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** "1 item", "2 items". */
export function count(n, noun) {
  return `${figure(n)} ${noun}${n === 1 ? "" : "s"}`;
}
