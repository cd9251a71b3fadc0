"""Run notebooks from top to bottom and store what they show.

`python docs/run_notebooks.py 01_regression` runs a notebook in a kernel of its own. What depends on
the machine and on what is compiled already is not stored: times, lines about compilation, and the
files that warnings come from.
"""

import argparse
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
NOT_STORED = re.compile(
    r"^(Compiling .* for later runs\.|\.\.\. .* kernels so far\.)\n", re.MULTILINE
)
FILES = re.compile(r"^/\S+\.py:\d+: (?=\w*Warning: )", re.MULTILINE)
SECONDS = re.compile(r" took \d+ seconds\.")


def run(path: Path) -> None:
    """Run a notebook and write it."""
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=3600, kernel_name="python3", record_timing=False).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = tidied(cell.outputs)
    nbformat.write(notebook, path)


def tidied(outputs):
    """Streams in one piece, without what is not stored."""
    kept, streams = [], {}
    for output in outputs:
        if output.output_type != "stream":
            kept.append(output)
        elif output.name in streams:
            streams[output.name].text += output.text
        else:
            streams[output.name] = output
            kept.append(output)
    for output in streams.values():
        output.text = FILES.sub("", SECONDS.sub(".", NOT_STORED.sub("", output.text)))
    return [output for output in kept if output.get("text", "some")]


def main() -> None:
    """Run the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", help="names without .ipynb")
    for name in parser.parse_args().notebooks:
        run(NOTEBOOKS / f"{name}.ipynb")


if __name__ == "__main__":
    main()
