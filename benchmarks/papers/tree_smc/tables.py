"""Tables of mean scores, with the spread over seeds."""

import numpy as np

HEAD = (
    "method",
    "C / I",
    "proposal",
    "expansion",
    "CPU s",
    "test log p",
    "accuracy",
    "log Z",
    "leaves",
)
BELOW = (0.05, 0.02, 0.01, 0.0)
"""Levels of test log-probability, below the last one of CGM."""


def grouped(results):
    """data -> method and settings -> list over seeds of scores."""
    out: dict = {}
    for key, scores in results.items():
        name, settings = key.rsplit(" seed", 1)[0].split(" ", 1)
        out.setdefault(name, {}).setdefault(settings, []).append(scores)
    return out


def number(values, digits):
    values = np.asarray(values, float)
    if np.isnan(values).all():
        return ""
    text = f"{values.mean():.{digits}f}"
    return text if values.size == 1 else f"{text} ± {values.std(ddof=1):.{digits}f}"


def row(settings, seeds):
    last = [scores[-1] for scores in seeds]
    words = settings.split(" ")
    if words[0] == "smc":
        start = ["SMC", words[1].replace("/", " / "), words[2], words[3]]
    else:
        start = [settings, "", "", ""]
    columns = [("seconds", 2), ("log_p", 3), ("accuracy", 4), ("log_z", 1), ("leaves", 0)]
    return start + [number([getattr(s, field) for s in last], d) for field, d in columns]


def speed(name, methods):
    """How much sooner SMC (prior, node-wise, five islands) reaches the levels of CGM."""
    chains = [
        seed for settings, seeds in methods.items() if settings[:3] == "cgm" for seed in seeds
    ]
    runs = [
        (np.mean([s[-1].seconds for s in seeds]), np.mean([s[-1].log_p for s in seeds]), settings)
        for settings, seeds in methods.items()
        if settings.startswith("smc") and settings.endswith("/5 prior node")
    ]
    if not chains or not runs:
        return ""
    mean = np.mean([[s.log_p for s in chain] for chain in chains], axis=0)
    seconds = np.mean([[s.seconds for s in chain] for chain in chains], axis=0)
    lines = [f"CPU seconds to a test log p, {name}, SMC (prior, node-wise, five islands):\n"]
    lines.append("| level | CGM | SMC | C | times sooner |\n|---|---|---|---|---|")
    for below in BELOW:
        level = mean[-1] - below
        reached = seconds[np.argmax(mean >= level)]
        what = f"| CGM's last less {below}: {level:.3f} | {reached:.2f} "
        enough = [(t, settings) for t, log_p, settings in runs if log_p >= level]
        if not enough:
            lines.append(f"{what}| not reached | | |")
            continue
        first, settings = min(enough)
        particles = settings.split()[1].split("/")[0]
        lines.append(f"{what}| {first:.2f} | {particles} | {reached / first:.0f} |")
    return "\n".join(lines)


def write(results, path):
    """All tables, also to a file."""
    parts = []
    for name, methods in grouped(results).items():
        parts.append(f"## {name}\n")
        parts.append("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
        parts += ["| " + " | ".join(row(s, seeds)) + " |" for s, seeds in methods.items()]
        parts.append(f"\n{speed(name, methods)}\n")
    text = "\n".join(parts)
    path.write_text(text)
    return text
