"""Long names in tables may be broken at their joints, so that tables fit the screen of a phone."""

import re

CODE = re.compile(r"<code\b.*?</code>", re.DOTALL)
CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
WORD = re.compile(r'(?<=<span class="pre">)[^<]+')
JOINT = re.compile(r"(?<=[^\W\d][._(=,\[/])(?=\w)")


def break_names(app, page, template, context, doctree) -> None:
    """Add places to break after the joints of names and calls; what is copied stays as it is."""
    body = context.get("body")
    if body:
        context["body"] = CELL.sub(lambda cell: CODE.sub(in_code, cell[0]), body)


def in_code(code: re.Match) -> str:
    """Code with the places to break."""
    return WORD.sub(lambda word: JOINT.sub("<wbr>", word[0]), code[0])


def setup(app):
    """Change pages before they are written."""
    app.connect("html-page-context", break_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
