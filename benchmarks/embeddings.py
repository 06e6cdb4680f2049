"""The benchmark of MQ-Net on frozen features: the table, the oracle gaps, and paired differences with intervals.

    python benchmarks/embeddings.py [NAME] [--out DIR] [--jobs N]

NAME is a configuration beside this file, `embeddings` (20 seeds; forty minutes on two cores) if none is given. Runs are
resumable, and runs into the same folder share what they have in common.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mqnet.experiment.config import load_config
from mqnet.experiment.report import write_report
from mqnet.experiment.run import run_experiment
from mqnet.experiment.stored import stored_results
from mqnet.experiment.summary import comparisons, favourite_of, gaps, tables

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="embeddings")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args()
    out = args.out or Path("runs") / args.name
    config = load_config(HERE / f"{args.name}.toml")
    for done in run_experiment(config, out, jobs=args.jobs):
        if done.error is not None:
            print(f"failed: {done.cell.title}: {done.error}")
        elif done.done % 20 == 0:
            print(f"{done.done} of {done.total} campaigns, {done.seconds:.0f} s", flush=True)
    results = stored_results(out)
    for table in (*tables(results), *gaps(results)):
        print(f"\n{table.markdown()}")
    for table in comparisons(results, favourite_of(results.strategies)):
        print(f"\n{table.markdown()}")
    print(f"\n{write_report(out)}")


if __name__ == "__main__":
    main()
