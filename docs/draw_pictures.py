"""Run the code of pictures.md and draw its pictures: ``python docs/draw_pictures.py``."""

import re
from pathlib import Path

PAGE = Path(__file__).with_name("pictures.md")
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+!\[[^\]]*\]\((.*?)\))?", re.DOTALL)


def blocks():
    """Code, and the picture that stands below it, of the page."""
    return [match.groups() for match in BLOCK.finditer(PAGE.read_text())]


def main():
    """Draw what stands on the page."""
    scope: dict = {}
    for code, picture in blocks():
        exec(compile(code, str(PAGE), "exec"), scope)
        if picture:
            path = PAGE.parent / picture
            path.parent.mkdir(exist_ok=True)
            scope["drawn"].savefig(path)


if __name__ == "__main__":
    main()
