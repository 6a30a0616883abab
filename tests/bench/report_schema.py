#!/usr/bin/env python3
"""report_schema.py TUCK_BENCH SCHEMA: every table's JSON fits the schema and has the keys that are promised.

Each table is run as briefly as can be, without peers. What only peers give is not asked for.
"""
import json
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("SKIPPED: python3-jsonschema is not installed")
    sys.exit(77)

BRIEFLY = ["--json", "--synthetic", "--no-peers", "--seconds", "0.05", "--rounds", "1", "--threads", "2"]
PATIENCE = 250  # seconds; only a hang takes that long

# Keys that other programs read: of tuck's own rows, and of the summary.
KEYS = {
    "churn": ([], ["tuck_resident_over_payload_after_half_freed"]),
    "codecs": (
        ["corpus", "codec", "unit_kib", "ratio", "store_us", "load_us", "store_p99_us", "load_p99_us"],
        ["lz4_4k_store_over_bare", "lz4_4k_load_over_bare"],
    ),
    "density": ([], ["tuck_resident_over_payload"]),
    "nbd": (["server", "rw", "bs", "depth", "iops", "mb_s", "p50_us", "p99_us"], []),
    "scale": (["op", "threads", "ops_per_s"], ["store_speedup_2", "load_speedup_2"]),
}


def tables(bench):
    """Names of the tables, from --help: the lines behind "Tables:"."""
    text = subprocess.run([bench, "--help"], capture_output=True, text=True, check=True).stdout
    lines = text[text.index("\nTables:\n") :].splitlines()[2:]
    return [line.split()[0] for line in lines if line.strip()]


def wrong_with_keys(report):
    """Sentences about promised keys that are missing, and about figures that do not belong together."""
    if report["table"] not in KEYS:
        yield "report_schema.py does not know its keys: add them to KEYS"
        return
    row_keys, summary_keys = KEYS[report["table"]]
    ours = [row for row in report["rows"] if row.get("subject", "tuck").startswith("tuck")]
    if not ours:
        yield "no row is tuck's"
    for row in ours:
        missing = [key for key in row_keys if key not in row]
        if missing:
            yield f"a row lacks {', '.join(missing)}: {row}"
    for key in summary_keys:
        if key not in report["summary"]:
            yield f"the summary lacks {key}"
    for name in report["summary"]:
        if not name.endswith("_spread") and name + "_spread" not in report["summary"]:
            yield f"the summary has no spread for {name}"
    for target in report["targets"]:
        if target["figure"] not in report["summary"]:
            yield f"a target is for {target['figure']}, which the summary lacks"


def wrong_with_setting(report, table):
    """That the report says what it was asked for."""
    if report["table"] != table:
        yield f"it calls itself {report['table']}"
    if not report["pages"]["synthetic"] or "SYNTHETIC" not in report["pages"]["from"]:
        yield f"it does not say that its pages are synthetic: {report['pages']}"
    if report["setting"] != {"rounds": 1, "seconds": 0.05, "threads": 2}:
        yield f"it does not say how it was run: {report['setting']}"


def wrong_with(bench, table, validator):
    """Everything that is wrong with one table, as sentences."""
    done = subprocess.run([bench, table, *BRIEFLY], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        return [f"it exited with {done.returncode}: {done.stderr.strip()}"]
    try:
        report = json.loads(done.stdout)
    except ValueError as error:
        return [f"it printed no JSON ({error}): {done.stdout[:400]}"]
    wrong = [f"at {error.json_path}: {error.message}" for error in validator.iter_errors(report)]
    # The rest needs what the schema promises.
    return wrong or [*wrong_with_setting(report, table), *wrong_with_keys(report)]


def main():
    bench, schema_path = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    names = tables(bench)
    failed = not names
    for table in names:
        wrong = wrong_with(bench, table, validator)
        failed = failed or bool(wrong)
        print(f"{table}: {'FAILED' if wrong else 'right'}", flush=True)
        for sentence in wrong:
            print(f"  {sentence}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
