"""Rows of numbers as markdown."""

import platform
from pathlib import Path

import psutil

COLUMNS = {
    "package": "package",
    "steps": "steps",
    "seconds": "seconds",
    "seconds_warmup": "warm-up s",
    "seconds_sampling": "sampling s",
    "sweeps_per_second": "sweeps/s",
    "ess_f": "ESS f",
    "ess_f_min": "min ESS f",
    "ess_f_per_second": "ESS f /s",
    "ess_sigma_per_second": "ESS sigma /s",
    "rhat_f": "R-hat f",
    "rhat_f_max": "max R-hat f",
    "rhat_sigma": "R-hat sigma",
    "rmse": "RMSE",
    "coverage_f": "90% of f",
    "coverage_y": "90% of y",
    "mb_peak": "peak MB",
    "mb_before": "MB before",
    "seconds_compile": "compile s",
    "seconds_predict": "predict s",
}
DIGITS = {
    "rhat_f": 3,
    "rhat_f_max": 2,
    "rhat_sigma": 3,
    "rmse": 3,
    "coverage_f": 3,
    "coverage_y": 3,
}


def number(key, value):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if key in DIGITS:
        return f"{value:.{DIGITS[key]}f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def of_case(rows):
    """The table of one case; below it, the packages that gave no numbers."""
    good = [row for row in rows if "error" not in row]
    text = markdown(
        COLUMNS.values(), [[number(key, row.get(key)) for key in COLUMNS] for row in good]
    )
    notes = [f"- {row['package']}: {row['error']}" for row in rows if "error" in row]
    return "\n\n".join(part for part in (text if good else "", "\n".join(notes)) if part)


def processor():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine(versions=None):
    """Processor, cores and versions: numbers mean little without them."""
    text = f"{processor()}, {psutil.cpu_count()} cores, Python {platform.python_version()}"
    if versions:
        text += "; " + ", ".join(f"{name} {version}" for name, version in versions.items())
    return text
