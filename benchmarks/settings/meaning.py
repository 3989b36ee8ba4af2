"""Do the metrics check facts? ``python benchmarks/settings/meaning.py`` scores tests/meaning.jsonl with every metric.

Each row has a reference, a text in which one fact is changed, and a faithful paraphrase. Counted by kind of change: how
often the paraphrase scores above the changed fact, and how often the changed fact scores as an equal text does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import movers

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from common import save_results  # noqa: E402

METRICS = ("wms", "sms", "swms", "moverscore", "bertscore_hungarian", "bertscore_emd", "reference_free_summary_quality")


def main() -> None:
    text = (HERE.parents[1] / "tests" / "meaning.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    above: dict[str, dict[str, object]] = {}
    equal: dict[str, dict[str, object]] = {}
    for name in METRICS:
        references = [row["reference"] for row in rows]
        changed, paraphrase, same = (
            getattr(movers, name)([row[key] for row in rows], references)["scores"]
            for key in ("changed", "paraphrase", "reference")
        )
        counts = {kind: [n for n, row in enumerate(rows) if row["kind"] == kind] for kind in kinds} | {
            "all": list(range(len(rows)))
        }
        above[name] = {kind: sum(paraphrase[n] > changed[n] for n in members) for kind, members in counts.items()}
        equal[name] = {kind: sum(changed[n] >= same[n] - 1e-6 for n in members) for kind, members in counts.items()}
    save_results(HERE, "paraphrase above changed fact", above)
    save_results(HERE, "changed fact as good as equal", equal)
    for title, table in (("above", above), ("equal", equal)):
        print(title)
        for name, cells in table.items():
            print(f"  {name:32}", cells)


if __name__ == "__main__":
    main()
