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
NEAR = 0.02
"""Test log-probability within which a level counts as reached."""


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
    """How much sooner SMC (prior, node, five islands) reaches the level of CGM."""
    chains = [
        scores for settings, seeds in methods.items() if settings[:3] == "cgm" for scores in seeds
    ]
    runs = {
        s: seeds
        for s, seeds in methods.items()
        if s.startswith("smc") and s.endswith("/5 prior node")
    }
    if not chains or not runs:
        return ""
    level = float(np.mean([chain[-1].log_p for chain in chains])) - NEAR
    mean = np.mean([[s.log_p for s in chain] for chain in chains], axis=0)
    seconds = np.mean([[s.seconds for s in chain] for chain in chains], axis=0)
    reached = float(seconds[np.argmax(mean >= level)])
    enough = [
        (np.mean([s[-1].seconds for s in seeds]), settings)
        for settings, seeds in runs.items()
        if np.mean([s[-1].log_p for s in seeds]) >= level
    ]
    head = f"{name}: CGM comes within {NEAR} of its final test log p after {reached:.2f} s of CPU"
    if not enough:
        return f"{head}; no run of SMC (prior, node-wise, five islands) does."
    first, settings = min(enough)
    sooner = reached / first
    return f"{head}, SMC {settings.split()[1]} after {first:.2f} s: {sooner:.0f} times sooner."


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
