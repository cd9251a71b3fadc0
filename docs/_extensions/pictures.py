"""Pictures in dark mode: where `x_dark.png` stands beside `x.png`, the page has both.

The theme hides the one that does not fit. Other pictures are drawn on white in either mode.
"""

from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform


class DarkPictures(SphinxTransform):
    """Place the dark picture after the light one."""

    default_priority = 200  # before Sphinx collects the files of images

    def apply(self, **kwargs):
        """Add a second image to each that has a dark variant."""
        page = Path(self.env.doc2path(self.env.docname)).parent
        for light in list(self.document.findall(nodes.image)):
            path = Path(light["uri"])
            dark = path.with_name(f"{path.stem}_dark{path.suffix}")
            if "://" in light["uri"] or not (page / dark).exists():
                continue
            other = light.deepcopy()
            other["uri"] = dark.as_posix()
            light["classes"].append("only-light")
            other["classes"].append("only-dark")
            light.parent.insert(light.parent.index(light) + 1, other)


def setup(app):
    """Register the transform."""
    app.add_transform(DarkPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
