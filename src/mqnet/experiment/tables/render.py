"""Tables as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from typing import Literal, get_args

from mqnet.errors import ConfigError, nearest_name
from mqnet.experiment.tables.shape import Table

Format = Literal["text", "markdown", "latex", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTH = 80
UNFOLDED = 16
BEST, SECOND = "*", "+"


def render(table: Table, format: str, *, width: int = WIDTH) -> str:  # what it is called everywhere
    """The table in one of `FORMATS`; `width` is a terminal's: a wider table is shown in blocks of columns."""
    if format == "text":
        return _text(table, width)
    if format == "markdown":
        return _markdown(table)
    if format == "latex":
        return _latex(table)
    if format == "csv":
        return _csv(table)
    raise ConfigError(f"no format is called '{format}'.{nearest_name(format, FORMATS)}")


# -- text ------------------------------------------------------------------------------------------------------------


def _text(table: Table, width: int) -> str:
    marks = {**dict.fromkeys(table.best, BEST), **dict.fromkeys(table.second, SECOND)}
    marked = {column for _, column in marks}
    cells = [
        [text + (marks.get((r, c), " ") if c in marked else "") for c, text in enumerate(row)]
        for r, row in enumerate(table.rows)
    ]
    heads = [name + " " * (c in marked) for c, name in enumerate(table.columns)]
    widths = [max(len(text) for text in (heads[c], *(row[c] for row in cells))) for c in range(len(heads))]
    for i, (text, _) in enumerate(table.spans):
        under = [c for c in range(len(widths)) if table.span_of(c) == i]
        widths[under[-1]] += max(0, len(text) - sum(widths[c] for c in under) - 2 * (len(under) - 1))
    if sum(widths) + 2 * (len(widths) - 1) > width:
        names = [[table.columns[c], *(row[c] for row in table.rows)] for c in range(table.n_names)]
        words = [max(len(word) for text in texts for word in (*text.split(), "")) for texts in names]
        _narrow(widths, [max(word, UNFOLDED) for word in words], width // 2)
    parts = [_wrapped(table.title, width)]
    parts += [_block(table, heads, cells, widths, some) for some in _column_blocks(widths, table.n_names, width)]
    legend = [f"{BEST} best" + (f", {SECOND} second best" if table.second else "")] if table.best else []
    notes = [line for note in table.notes for line in _wrapped(note, width)]
    if legend or notes:
        parts.append([*legend, *notes])
    return "\n\n".join("\n".join(part) for part in parts)


def _narrow(widths: list[int], least: list[int], room: int) -> None:
    """Take from the widest name until the names leave room for numbers: their texts are folded, words stay whole."""
    names = range(len(least))
    while sum(widths[c] + 2 for c in names) > room:
        spare = [c for c in names if widths[c] > least[c]]
        if not spare:
            return
        widths[max(spare, key=lambda c: widths[c])] -= 1


def _column_blocks(widths: list[int], n_names: int, width: int) -> list[list[int]]:
    """Columns side by side as far as they fit; the names stand in every block."""
    names = list(range(n_names))
    room = width - sum(widths[c] + 2 for c in names)
    blocks: list[list[int]] = [[]]
    used = 0
    for c in range(n_names, len(widths)):
        if blocks[-1] and used + widths[c] + 2 > room + 2:
            blocks.append([])
            used = 0
        blocks[-1].append(c)
        used += widths[c] + 2
    return [[*names, *block] for block in blocks]


def _block(table: Table, heads: list[str], cells: list[list[str]], widths: list[int], columns: list[int]) -> list[str]:
    def lines(texts: list[str]) -> list[str]:
        folded = [_wrapped(texts[c], widths[c]) if c < table.n_names else [texts[c]] for c in columns]
        height = max(len(part) for part in folded)
        out: list[str] = []
        for k in range(height):
            parts = [part[k] if k < len(part) else "" for part in folded]
            padded = [
                text.ljust(widths[c]) if c < table.n_names else text.rjust(widths[c])
                for c, text in zip(columns, parts, strict=True)
            ]
            out.append("  ".join(padded).rstrip())
        return out

    rule = "-" * (sum(widths[c] for c in columns) + 2 * (len(columns) - 1))
    out = [_span_line(table, widths, columns)] if table.spans else []
    out += [*lines(heads), rule]
    for r, row in enumerate(cells):
        if r in table.rules:
            out.append(rule)
        out += lines([*table.shown_names(r), *row[table.n_names :]])
    return out


def _span_line(table: Table, widths: list[int], columns: list[int]) -> str:
    out = ""
    previous: int | None = None
    for place, c in enumerate(columns):
        span = table.span_of(c)
        gap = "  " if place else ""
        if span is not None and span != previous:
            same = [k for k in columns if table.span_of(k) == span]
            room = sum(widths[k] for k in same) + 2 * (len(same) - 1)
            text = table.spans[span][0]
            out += gap + (text if len(text) <= room else text[: room - 1] + "…").center(room)
        elif span is None:
            out += gap + " " * widths[c]
        previous = span
    return out.rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


# -- Markdown ----------------------------------------------------------------------------------------------------------


def _markdown(table: Table) -> str:
    def row_of(texts: list[str]) -> str:
        return "| " + " | ".join(texts) + " |"

    best, second = set(table.best), set(table.second)
    lines = [f"**{_literal(table.title)}**", "", row_of(list(map(_literal, _flat_heads(table))))]
    lines.append("|" + " --- |" * table.n_names + " ---: |" * (len(table.columns) - table.n_names))
    for r, row in enumerate(table.rows):
        texts = [
            f"**{text}**" if (r, c) in best else f"<u>{text}</u>" if (r, c) in second else text
            for c, text in enumerate(map(_literal, [*table.shown_names(r), *row[table.n_names :]]))
        ]
        lines.append(row_of(texts))
    legend = _legend(table)
    return "\n".join([*lines, *(f"\n{note}" for note in (*legend, *table.notes))])


def _literal(text: str) -> str:
    """The text as Markdown prints it: no column, emphasis or tag in it."""
    return re.sub(r"<(?=[A-Za-z/!])", "&lt;", re.sub(r"([|*`])", r"\\\1", text))


def _flat_heads(table: Table) -> list[str]:
    """Column heads that carry the text that spans them: for formats without spans."""
    out: list[str] = []
    for c, name in enumerate(table.columns):
        span = table.span_of(c)
        out.append(name if span is None else f"{table.spans[span][0]} {name}".strip())
    return out


def _legend(table: Table) -> list[str]:
    if not table.best:
        return []
    return ["Bold: best; underlined: second best." if table.second else "Bold: best."]


# -- LaTeX -------------------------------------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "−": "$-$", "–": "--", "—": "---", "·": r"$\cdot$", "×": r"$\times$", "≤": r"$\leq$",
    "≥": r"$\geq$", "…": r"\dots{}", "χ": r"$\chi$", "τ": r"$\tau$", "²": r"$^2$", "½": r"$\frac{1}{2}$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """The text as LaTeX prints it: nothing in it is a command."""
    return "".join(_LATEX.get(character, character) for character in text)


def _latex(table: Table) -> str:
    best, second = set(table.best), set(table.second)
    layout = "l" * table.n_names + "r" * (len(table.columns) - table.n_names)
    lines = ["% needs \\usepackage{booktabs}", r"\begin{table}[t]", r"\centering"]
    lines += [rf"\caption{{{escape_latex(table.title)}}}", rf"\begin{{tabular}}{{{layout}}}", r"\toprule"]
    if table.spans:
        lines += _latex_spans(table)
    lines += [" & ".join(map(escape_latex, table.columns)) + r" \\", r"\midrule"]
    for r, row in enumerate(table.rows):
        if r in table.rules:
            lines.append(r"\midrule")
        texts = [escape_latex(text) for text in (*table.shown_names(r), *row[table.n_names :])]
        for c, text in enumerate(texts):
            if (r, c) in best:
                # \boldmath: a sign set in mathematics would stay light
                texts[c] = rf"\textbf{{\boldmath {text}}}" if "$" in text else rf"\textbf{{{text}}}"
            elif (r, c) in second:
                texts[c] = rf"\underline{{{text}}}"
        lines.append(_safe_start(" & ".join(texts)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    legend = _legend(table)
    notes = " ".join(escape_latex(note) for note in (*legend, *table.notes))
    if notes:
        lines += ["", r"\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize {notes}}}"]
    return "\n".join([*lines, r"\end{table}"])


def _safe_start(line: str) -> str:
    # after \\ a bracket or a star would be read as its argument
    return "{}" + line if line.startswith(("[", "*")) else line


def _latex_spans(table: Table) -> list[str]:
    first = table.n_names + 1
    heads, rules = [""] * table.n_names, list[str]()
    for text, width in table.spans:
        heads.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(text)}}}")
        if text:
            rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
        first += width
    return [" & ".join(heads) + r" \\", "".join(rules)]


# -- CSV ---------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"^(?P<value>(?:> )?[-+]?[\d.]+)(?: ± (?P<sd>[\d.]+))?(?: \[(?P<low>[-+]?[\d.]+), (?P<high>[-+]?[\d.]+)\])?"
    r"(?: \((?P<note>[^()]*)\))?$"
)


def _csv(table: Table) -> str:
    """Numbers for programs: deviations, ends of intervals and remarks have columns of their own; no notes, no marks."""
    out = io.StringIO()
    columns = [list(column) for column in zip(_flat_heads(table), *table.rows, strict=True)]
    split = [part for c, column in enumerate(columns) for part in _split(column, name=c < table.n_names)]
    csv.writer(out, lineterminator="\n").writerows(zip(*split, strict=True))
    return out.getvalue().rstrip("\n")


def _split(column: list[str], *, name: bool) -> list[list[str]]:
    head, *texts = column
    found = [None if name else _NUMBER.match(text) for text in texts]
    parts = [[head, *(hit["value"] if hit else text for hit, text in zip(found, texts, strict=True))]]
    for group in ("sd", "low", "high", "note"):
        values = [hit[group] or "" if hit else "" for hit in found]
        if any(values):
            parts.append([f"{head} {group}", *values])
    return parts
