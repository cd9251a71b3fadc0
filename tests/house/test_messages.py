"""The pages of `docs/troubleshooting` explain every error and warning of the package, and no other.

A message is read from the source of the call that makes it, with … for each value put in. A page
quotes pieces of messages as **`piece`**; a message is explained where some page has a piece of it.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text() for path in (ROOT / "docs/troubleshooting").glob("*.md")}
NOT_OURS = "others"
"""Page whose pieces are other packages' words."""
OURS = "\n".join(text for name, text in PAGES.items() if name != NOT_OURS)

# Name of a function that makes a message, other than those called ...Error or ...Warning.
MAKERS = {"warn", "warning", "refusal"}

# Exception -> why no user meets it.
INTERNAL = {
    "NotRowwiseError": "caught by read_target, which goes on to the likelihood as a whole",
    "MixedRowsError": "the same; or its words end in a refusal",
    "LeafNotProposedError": "caught by read_target, which raises the refusal of the first target",
    "NotLatentError": "caught by read_target, which goes on to the rows as they are",
    "NotASliceError": "caught where the model is read, which goes on with all outputs",
    "NotAffineError": "caught where the model is read; its words end in a refusal",
}

# Message -> why it has no entry of its own.
NO_ENTRY = {
    **dict.fromkeys(
        [
            "… does not answer ….",
            "The moves of the sweep lack ….",
            "…: opens … trees, but a sweep opens one at a time.",
            "…: another move has this name.",
            "…: outputs must be a kernel at the top level of a module that can be imported by its "
            "name, since compiled code is kept under that name.",
            "…: n_outputs=… must be that of its kernel, and between 1 and n_values=….",
            "… is not a contiguous array of one dimension",
            "… is not a contiguous array of codes or of float64",
        ],
        "for those who extend the package: docs/extending says what a kernel has to answer",
    ),
    "module 'pymc_trees' has no attribute …": "Python's own words for a wrong name",
    "its entries are of type …": "quoted in another message",
    "complex numbers have no order": "quoted in another message",
    "it holds … of type …": "quoted in another message",
    "they are no finite numbers": "quoted in another message",
    **dict.fromkeys(
        [
            "a tree is of another kind",
            "the arrays of a tree have different lengths",
            "the state of a tree is not one",
            "the nodes of a tree do not fit each other",
            "an array of a tree is of another type or shape",
            "more rows are counted than there are",
            "rows are of another type",
            "rows are not finite",
            "labels are not classes",
            "another number of trees",
            "format …, not …",
            "… for …",
        ],
        "quoted in the message of a damaged pickle",
    ),
    "… is …; …": "a reason in a refusal, which a page explains",
    "… (… is in the way)": "the same",
}


def pieces(text: str) -> list[str]:
    """Pieces of messages quoted in a text."""
    return [piece.strip() for piece in re.findall(r"\*\*`([^`]+)`\*\*", text)]


def text_of(node) -> str:
    """Text of an expression with … for each value put in; "" where there is no text at all."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(v) if isinstance(v, ast.Constant) else "…" for v in node.values)
    if isinstance(node, ast.BinOp):
        return (text_of(node.left) or "…") + (text_of(node.right) or "…")
    return ""


def _grouped(pairs) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, node in pairs:
        found.setdefault(name, set()).add(text_of(node))
    return {name: texts - {""} for name, texts in found.items()}


def assigned(tree) -> dict[str, set[str]]:
    """Texts that each name of a file is given."""
    return _grouped(
        (node.targets[0].id, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    )


def returned(trees) -> dict[str, set[str]]:
    """Texts that each function of the package gives back."""
    return _grouped(
        (function.name, node.value)
        for tree in trees
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
    )


def messages() -> dict[str, list[str]]:
    """Messages of the package, and the places that make them."""
    trees = {path: ast.parse(path.read_text()) for path in (ROOT / "pymc_trees").rglob("*.py")}
    given_back = returned(trees.values())
    names = {path: assigned(tree) for path, tree in trees.items()}
    constants = {k: v for found in names.values() for k, v in found.items() if k.isupper()}

    def texts_of(path, node) -> set[str]:
        if isinstance(node, ast.IfExp):
            return texts_of(path, node.body) | texts_of(path, node.orelse)
        if isinstance(node, ast.Name):
            return names[path].get(node.id, set()) | constants.get(node.id, set())
        if isinstance(node, ast.Call):
            return given_back.get(ast.unparse(node.func).split(".")[-1], set())
        return {text_of(node)} - {""}

    found: dict[str, list[str]] = {}
    for path, tree in sorted(trees.items()):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            maker = ast.unparse(node.func).split(".")[-1]
            if not (maker in MAKERS or maker.endswith(("Error", "Warning"))) or maker in INTERNAL:
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            texts = set().union(*(texts_of(path, argument) for argument in node.args))
            # A severity ("error"), and what only puts other messages together, are none.
            ours = {text for text in texts if re.search(r"\w+ ", text)}
            for text in ours if texts else {f"(no text to be read: {ast.unparse(node)})"}:
                found.setdefault(" ".join(text.split()), []).append(place)
    return found


def explains(piece: str, message: str) -> bool:
    """Whether a piece is one of the message, and too long to be one of many others."""
    return piece == message or (len(piece.replace("…", "")) >= 12 and piece in message)


MESSAGES = messages()


def test_every_message_is_explained():
    known = pieces(OURS)
    missing = {
        message: places
        for message, places in MESSAGES.items()
        if message not in NO_ENTRY and not any(explains(piece, message) for piece in known)
    }
    lines = "\n".join(f"{', '.join(places)}\n    {text}" for text, places in missing.items())
    assert not missing, f"docs/troubleshooting has no entry for\n{lines}"


def test_nothing_is_explained_that_no_longer_exists():
    ours = pieces(OURS)
    gone = [piece for piece in ours if not any(explains(piece, text) for text in MESSAGES)]
    assert gone == [], "take them off docs/troubleshooting"
    assert [message for message in NO_ENTRY if message not in MESSAGES] == []


def test_no_piece_stands_twice():
    found = pieces("\n".join(PAGES.values()))
    assert len(found) == len(set(found))


def test_the_index_names_every_page():
    index = (ROOT / "docs/troubleshooting.md").read_text()
    assert set(re.findall(r"\(troubleshooting/(\w+)\.md\)", index)) == set(PAGES)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("f'a {x} b'", "a … b"),
        ("'a ' 'b'", "a b"),
        ("f'{x!r}: ' + more", "…: …"),
        ("str(op)", ""),
    ],
)
def test_texts_are_read(code, text):
    assert text_of(ast.parse(code, mode="eval").body) == text


def test_short_pieces_explain_only_what_they_are():
    assert explains("… must be …, got …", "… must be …, got …")
    assert not explains("… must be …", "alpha must be …, got …")
    assert explains("must be an integer", "alpha must be an integer, got …")
