"""Run the code of pages from top to bottom and store what it shows.

`python docs/run_pages.py quickstart` runs a page in a process of its own, in an empty folder. What
a block of Python prints, and the value of its last line, are written in a block of text below it;
figures go to the picture named on the line below that:

    ```python
    pmt.summary(idata)
    pmt.plot_pdp(idata, model, "hour")
    ```

    ```text
    (written by this script)
    ```

    ![What you see](pictures/quickstart_hour.png)

A block that cannot run, because it wants a cluster or another package, has
`<!-- not run: the reason -->` on the line above. `--check` writes nothing and fails where the code
does or where the words shown are others (numbers may differ); with `--few` chains are short, and
words that follow from the draws are not compared: `<!-- words of whole chains -->` stands on the
line above. A test of the full tier checks all pages in this way.
"""

import argparse
import ast
import contextlib
import functools
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^\n]*-->\n)?(?P<whole><!-- words of whole chains -->\n)?"
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?P<text>\n```text\n.*?^```\n)?(?P<pictures>(?:\n!\[[^\]]*\]\(pictures/[^)]+\)\n)*)",
    re.DOTALL | re.MULTILINE,
)
"""A block of Python, and what follows it: its text and its pictures."""
GUIDE = "Start|Models|Data and sampling|Results"
"""Captions of the pages that a reader begins with."""
FEW = {"draws": 15, "tune": 15, "chains": 2, "cores": 1}
LIGHT = "#d0d3d6"
"""Colour of lines and letters on a dark page."""
GROUND = "#33373b"
"""Colour there of areas that are light grey on a white page."""


def pages(captions: str = f"{GUIDE}|Advanced") -> list[str]:
    """Pages below some captions of the sidebar, but for those in folders, and the index."""
    index = (DOCS / "index.md").read_text()
    trees = re.findall(rf"^:caption: (?:{captions})\n(.*?)^```$", index, re.DOTALL | re.MULTILINE)
    return ["index", *re.findall(r"^\w+$", "".join(trees), re.MULTILINE)]


def sample_quietly(few: bool) -> None:
    """Have `pymc.sample` show no bar, and where few draws are asked for make few."""
    import pymc as pm

    import pymc_trees

    assert pymc_trees.BART  # the first name puts on the wrappers, one of them on pm.sample
    sample = pm.sample

    @functools.wraps(sample)
    def quiet(*draws, **asked):
        asked |= dict(zip(["draws"], draws, strict=False)) | {"progressbar": False}
        return sample(**asked | (FEW if few else {}))

    pm.sample = quiet


def shown(code: str, names: dict) -> str:
    """Run a block; what it prints, and the value of its last line."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "<page>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
            if value is not None and not draws_pictures(value):
                out.write(f"{value}\n")
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def draws_pictures(value) -> bool:
    """Whether a value is seen as a picture, and its text says nothing."""
    if str(getattr(value, "dtype", "")) == "object":  # an array of axes
        value = value.ravel().tolist()
    if isinstance(value, list | tuple) and value:
        return all(map(draws_pictures, value))
    return type(value).__module__.startswith(("matplotlib", "arviz_plots", "pymc_trees.plots"))


def save_pictures(named: list[str], write: bool, where: str) -> None:
    """Save the open figures under the names that the page gives, for light and for dark pages."""
    import matplotlib.pyplot as plt

    numbers = plt.get_fignums()
    if len(numbers) != len(named):
        raise ValueError(
            f"{where}: the block makes {len(numbers)} figures, and {len(named)} pictures are named "
            "below it: write one line ![what is seen](pictures/name.png) for each."
        )
    for number, name in zip(numbers, named, strict=True):
        figure = plt.figure(number)
        if write:
            figure.savefig(DOCS / name, dpi=130, bbox_inches="tight")
            darken(figure)
            dark = (DOCS / name).with_name(Path(name).stem + "_dark.png")
            figure.savefig(dark, dpi=130, bbox_inches="tight", transparent=True)
    plt.close("all")


def darken(figure) -> None:
    """Draw in light grey what is black, in dark grey what is light, on no background."""
    from matplotlib.collections import FillBetweenPolyCollection, PathCollection
    from matplotlib.colors import to_rgb, to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from matplotlib.spines import Spine
    from matplotlib.text import Text

    def dark(color) -> bool:
        return max(to_rgb(color)) < 0.45 and max(to_rgb(color)) - min(to_rgb(color)) < 0.1

    def seen(color):
        red, green, blue, alpha = to_rgba(color)
        if dark(color):
            return (*to_rgb(LIGHT), alpha)
        if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.15:  # dark, and not grey
            return (0.5 + red / 2, 0.5 + green / 2, 0.5 + blue / 2, alpha)
        return color

    figure.canvas.draw()  # so that all have their places
    boxes = [  # of nodes of a tree
        axes.transData.transform_bbox(area.get_datalim(axes.transData))
        for axes in figure.axes
        for area in axes.collections
        if isinstance(area, FillBetweenPolyCollection) and area.get_alpha() in (None, 1.0)
    ]

    def has_ground(text) -> bool:
        x, y = text.get_window_extent().get_points().mean(axis=0)
        return text.get_bbox_patch() is not None or any(box.contains(x, y) for box in boxes)

    for artist in figure.findobj(lambda one: isinstance(one, Text | Line2D | Spine)):
        if isinstance(artist, Text) and has_ground(artist):
            continue
        if isinstance(artist, Spine):
            artist.set_edgecolor(LIGHT)
        elif isinstance(artist.get_color(), str | tuple):
            artist.set_color(seen(artist.get_color()))
    for dots in figure.findobj(PathCollection):
        dots.set_facecolor([seen(color) for color in dots.get_facecolor()])
    for band in figure.findobj(Rectangle):  # light grey areas
        face = to_rgb(band.get_facecolor())
        if min(face) > 0.75 and max(face) < 1 and max(face) - min(face) < 0.1:
            band.set_color(GROUND)
    for axes in figure.axes:
        axes.tick_params(which="both", color=LIGHT, labelcolor=LIGHT)
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        if legend is not None:
            legend.get_frame().set_alpha(0)


def run_page(page: str, write: bool, few: bool) -> None:
    """Run the blocks of a page in this process; write or compare what they show."""
    import matplotlib

    matplotlib.use("Agg")
    sample_quietly(few)
    path = DOCS / f"{page}.md"
    source, names = path.read_text(), {"__name__": "__main__"}
    done, position = [], 0
    for block in BLOCK.finditer(source):
        done.append(source[position : block.start()])
        position = block.end()
        if block["skip"]:
            done.append(block[0])
            continue
        line = source[: block.start()].count("\n") + 1
        where = f"docs/{page}.md, line {line}"
        try:
            text = shown(block["code"], names)
        except Exception:
            traceback.print_exc()
            raise SystemExit(f"{where}: this block fails") from None
        named = re.findall(r"\((pictures/[^)]+)\)", block["pictures"])
        save_pictures(named, write, where)
        fence = f"\n```text\n{text}\n```\n" if text else ""
        compared = not write and not (few and block["whole"])
        if compared and words(fence) != words(block["text"] or ""):
            raise SystemExit(f"{where}: the page shows\n{block['text']}\nand the code\n{fence}")
        code = f"{block['whole'] or ''}```python\n{block['code']}```\n"
        done.append(code + fence + block["pictures"])
    done.append(source[position:])
    if write:
        path.write_text("".join(done))


def words(text: str) -> str:
    """Text without what differs from run to run: numbers and the space around them."""
    text = re.sub(r"(?<![A-Za-z_])[-+]?\d+(?:[.,:]\d+)*\.?(?:e[-+]?\d+)?", "#", text)
    return "".join(text.replace("nan", "#").replace("-#", "#").split())


def main() -> None:
    """Run the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="names without .md; default: all of the guide")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--few", action="store_true", help="short chains; only with --check")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.few and not asked.check:
        parser.error("--few is for --check: what a page shows comes from whole chains")
    if asked.here:
        return run_page(asked.pages[0], not asked.check, asked.few)
    for page in asked.pages or pages():
        options = [*(["--check"] if asked.check else []), *(["--few"] if asked.few else [])]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(Path(__file__).resolve()), page, "--here", *options]
            paths = os.pathsep.join(
                filter(None, [str(DOCS.parent.resolve()), os.environ.get("PYTHONPATH")])
            )
            subprocess.run(command, cwd=folder, check=True, env=os.environ | {"PYTHONPATH": paths})


if __name__ == "__main__":
    main()
