"""Version of the package, and of its compiled kernels."""

import hashlib
from pathlib import Path

__version__ = "0.1.0"


def _kernels_version() -> int:
    """Number that changes with the source of any kernel.

    PyTensor keeps compiled graphs by the Op that made them; without this number it would go on
    using kernels of an earlier release.
    """
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted([*package.glob("core/**/*.py"), *package.glob("*/kernels/*.py")]):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:6], "little")


KERNELS_VERSION = _kernels_version()
