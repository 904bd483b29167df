"""The tables of docs/measured.md about defaults: classification and novelty beside their peers."""

from typing import Any

OURS = ("GPClassifier()", 'GPClassifier("auto")')
PEERS = ("SVM", "logistic regression", "k nearest", "random forest", "gradient boosting")
GROUPS = ("tables, clean", "tables not chosen on, clean", "tables, contaminated", "tables not chosen on, contaminated")
PICTURES = ("pictures, clean", "pictures, contaminated")


def classification(found: dict[str, Any]) -> list[str]:
    """Accuracy and log loss of every set; the best of a row is bold."""
    out = [
        "| set (training examples; * used for choosing, other splits) | " + " | ".join((*OURS, *PEERS)) + " |",
        "|---" * (1 + len(OURS) + len(PEERS)) + "|",
    ]
    for name, row in found["sets"].items():
        methods = row["methods"]
        star = "*" if row["chosen on other splits of it"] else ""
        best = max(methods[m]["accuracy"] for m in (*OURS, *PEERS) if m in methods)
        least = min(methods[m]["nats"] for m in (*OURS, *PEERS) if m in methods)
        cells = [_cell(methods[m], best, least) if m in methods else "–" for m in (*OURS, *PEERS)]
        out.append(f"| {name}{star} ({row['train']}) | " + " | ".join(cells) + " |")
    return out


def _cell(row: dict[str, float], best: float, least: float) -> str:
    accuracy, nats = f"{100 * row['accuracy']:.1f}", f"{row['nats']:.3f}"
    accuracy = f"**{accuracy}**" if row["accuracy"] >= best - 5e-4 else accuracy
    nats = f"**{nats}**" if row["nats"] <= least + 5e-4 else nats
    return f"{accuracy}, {nats}"


def novelty(found: dict[str, Any]) -> list[str]:
    """Mean rank and AUC of every detector."""
    groups, summary = (*GROUPS, *PICTURES), found["summary"]
    out = ["| detector | " + " | ".join(groups) + " |", "|---" * (1 + len(groups)) + "|"]
    for name in summary[GROUPS[0]]:
        cells = [
            f"{summary[g][name]['rank']:.2f}, {summary[g][name]['auc']:.3f}" if name in summary[g] else "–"
            for g in groups
        ]
        out.append(f"| `{name}` | " if name.startswith("OneClassGP") else f"| {name} | ")
        out[-1] += " | ".join(cells) + " |"
    return out
