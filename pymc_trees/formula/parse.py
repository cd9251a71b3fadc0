"""The text of a formula: forest terms, by Python's own grammar, and the rest, by formulae's."""

import ast
from dataclasses import dataclass, field
from typing import Any

KINDS = ("bart", "softbart", "tree")
"""What a forest term may be called: `BART`, `SoftBART`, `DecisionTree`."""
HELD = ("name", "X", "Y", "dims", "shape", "separate_trees")
"""Arguments of the classes that the formula itself sets; `name` may be given."""
NOT_TAKEN = ("hsgp", "counts", "constrained", "s", "te", "mo")
"""Functions of other packages' formulas, which would mean something else here."""


@dataclass
class ForestTerm:
    """One forest of a formula."""

    kind: str
    """One of `KINDS`."""
    text: str
    """As it stands in the formula."""
    columns: list[str]
    """Of the data frame."""
    settings: dict[str, Any]
    """Keyword arguments of the class, and k."""
    name: str = ""
    """Of the function."""
    factor: Any = None
    """Term of formulae that multiplies it, or None."""
    factor_name: str = ""


@dataclass
class Parsed:
    """A formula, read but not evaluated."""

    description: Any
    """Model of formulae, without the forest terms."""
    forests: list[ForestTerm] = field(default_factory=list)


def load_formulae():
    """The package formulae."""
    try:
        import formulae.matrices
        import formulae.parser
        import formulae.resolver
        import formulae.scanner
    except ImportError as error:
        raise ImportError(
            'Formulas need the package formulae: install it with pip install "pymc_trees[formula]".'
        ) from error
    return formulae


def parse(formula: str, columns: list[str], namespace: dict[str, Any]) -> Parsed:
    """Read a formula.

    Parameters
    ----------
    formula : str
    columns : list of str
        Of the data frame, which ``.`` in a forest term stands for.
    namespace : dict
        Where values of keyword arguments of forest terms are looked up.
    """
    formulae = load_formulae()
    if not isinstance(formula, str) or "~" not in formula:
        raise ValueError(f"formula={formula!r}: give a text such as 'y ~ bart(x1 + x2) + z'.")
    tokens, calls = _without_forests(formula, formulae)
    description = _resolved(tokens, formulae)
    response = description.response
    outcome = set() if response is None else response.var_names
    found = Parsed(description)
    stands = {f"forest{k}": call for k, call in enumerate(calls)}
    kept = []
    for term in description.common_terms:
        here = [c for c in getattr(term, "components", []) if c.name in stands]
        if not here:
            kept.append(term)
            continue
        others = [c for c in term.components if c.name not in stands]
        if len(here) > 1:
            raise _refused(
                formula, "a product of two forests; declare such a model with pymc_trees.BART"
            )
        call = stands[here[0].name]
        one = _read_call(call, formula, columns, outcome, namespace)
        if others:
            one.factor = type(term)(*others)
            one.factor_name = one.factor.name
        found.forests.append(one)
    description.common_terms = kept
    inside = [*description.group_terms, *kept, *([response] if response else [])]
    if any(set(stands) & set(term.var_names) for term in inside):
        raise _refused(
            formula,
            "a forest inside a function, a group term or the response; add it to the other terms",
        )
    _check_functions(description, formula)
    _name(found.forests)
    return found


def _refused(formula: str, what: str) -> NotImplementedError:
    return NotImplementedError(f"formula={formula!r} has {what}.")


def _check_functions(description, formula):
    terms = [*description.common_terms, *description.group_terms]
    for term in terms:
        parts = [term] if hasattr(term, "components") else [getattr(term, "expr", None)]
        for part in parts:
            for component in getattr(part, "components", []):
                callee = getattr(getattr(component, "call", None), "callee", None)
                if callee in NOT_TAKEN:
                    raise _refused(
                        formula,
                        f"{callee}(...), which is not supported; use bart(...), or write the model "
                        "with PyMC",
                    )


def _without_forests(formula: str, formulae):
    """Tokens with a stand-in for each forest term, and the tokens of those terms."""
    scanner = formulae.scanner.Scanner(formula)
    places: list[tuple[int, int]] = []
    while not scanner.at_end():
        scanner.start = scanner.current
        scanner.scan_token()
        if len(scanner.tokens) > len(places):
            places.append((scanner.start, scanner.current))
    tokens = scanner.tokens
    if sum(one.kind == "TILDE" for one in tokens) != 1:
        raise ValueError(f"formula={formula!r}: give one ~, between the response and the terms.")
    token = type(tokens[0])
    tokens = [*tokens, token("EOF", "")]
    kept, calls, k = [], [], 0
    while k < len(tokens):
        one = tokens[k]
        opens = k + 1 < len(tokens) and tokens[k + 1].kind == "LEFT_PAREN"
        if one.kind == "IDENTIFIER" and one.lexeme in KINDS and opens:
            depth, end = 0, k + 1
            while end < len(tokens):
                depth += {"LEFT_PAREN": 1, "RIGHT_PAREN": -1}.get(tokens[end].kind, 0)
                if depth == 0:
                    break
                end += 1
            if end >= len(tokens):
                raise ValueError(f"formula={formula!r}: close the parenthesis of {one.lexeme}(.")
            text = formula[places[k][0] : places[end][1]]
            calls.append((text, tokens[k : end + 1], places[k : end + 1], formula))
            # formulae's own names are taken from data alone, so this one is nobody's
            kept.append(token("IDENTIFIER", f"forest{len(calls) - 1}"))
            k = end + 1
            continue
        kept.append(one)
        k += 1
    tilde = next(k for k, one in enumerate(kept) if one.kind == "TILDE")
    kept[tilde + 1 : tilde + 1] = [token("NUMBER", "1", 1), token("PLUS", "+")]
    return kept, calls


def _resolved(tokens, formulae):
    from formulae.terms.terms import Model

    description = formulae.resolver.Resolver(formulae.parser.Parser(tokens).parse()).resolve()
    return description if isinstance(description, Model) else Model(description)


def _read_call(call, formula, columns, outcome, namespace) -> ForestTerm:
    """Columns and settings of a forest term, read as Python reads a call."""
    text, tokens, places, whole = call
    quoted: dict[str, str] = {}
    source, last = "", places[0][0]
    for one, (start, end) in zip(tokens, places):
        word = whole[start:end]
        if one.kind == "BQNAME":
            word = f"quoted_{len(quoted)}_"
            quoted[word] = whole[start + 1 : end - 1]
        elif one.kind == "PERIOD" and not source.rstrip().endswith((")", "]")):
            word = "all_columns_"
        source += whole[last:start] + word
        last = end
    try:
        node = ast.parse(source.replace("\n", " "), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text} is not a valid term: {error.msg}.") from error
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    if len(node.args) != 1 or any(k.arg is None for k in node.keywords):
        raise ValueError(
            f"{text}: give columns joined by +, then keyword arguments, as in "
            f"{node.func.id}(x1 + x2, alpha=0.9)."
        )
    every = [c for c in columns if c not in outcome]
    names = _columns(node.args[0], quoted, every, text)
    settings: dict[str, Any] = {}
    for word in node.keywords:
        assert word.arg is not None
        if word.arg in HELD and word.arg != "name":
            raise ValueError(f"{text}: {word.arg} is set by the formula; leave it out.")
        code = compile(ast.Expression(word.value), text, "eval")
        settings[word.arg] = eval(code, namespace)
    missing = [c for c in names if c not in columns]
    if missing:
        raise ValueError(f"{text}: {missing} are not columns of data, which has {columns}.")
    name = settings.pop("name", "")
    return ForestTerm(node.func.id, text, names, settings, name)


def _columns(node, quoted, every, text) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left = _columns(node.left, quoted, every, text)
        right = _columns(node.right, quoted, every, text)
        if isinstance(node.op, ast.Sub):
            return [c for c in left if c not in right]
        return [*left, *(c for c in right if c not in left)]
    if isinstance(node, ast.Name):
        return every if node.id == "all_columns_" else [quoted.get(node.id, node.id)]
    raise ValueError(
        f"{text}: a forest takes columns of data joined by +, and no functions or products of "
        "them. Add the function to data as a column."
    )


def _name(forests: list[ForestTerm]) -> None:
    taken = {one.name for one in forests if one.name}
    for one in forests:
        if one.name:
            continue
        base = f"{one.factor_name}:{one.kind}" if one.factor_name else one.kind
        name, k = base, 1
        while name in taken:
            k += 1
            name = f"{base}_{k}"
        one.name = name
        taken.add(name)
