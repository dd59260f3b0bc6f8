"""How long it takes to find the patterns among many failures, and to take in one more; and how well they agree.

Times are those of the processor. Run: python -m tests.bench.patterns [FAILURES]
"""

from __future__ import annotations

import statistics
import sys
import time

from msgspec import structs

from swarm_tui.failures.patterns import PatternIndex, find_patterns
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.results import State
from tests.failures.recorded.measure import LabelledFailure, labelled_failures, measured


def record_of(number: int, failure: LabelledFailure) -> TestRecord:
    """Return a test that has failed like this one, with a message of its own."""
    detail = failure.detail
    if detail is not None:
        errors = [structs.replace(each, message=f"{each.message} {number}") for each in detail.errors]
        detail = structs.replace(detail, errors=tuple(errors))
    file = f"tests/area_{number % 40}/test_{number % 400}.py"
    traits = (f"fixture f{number % 7}", f"fixture g{number % 31}", f"marker m{number % 3}", f"parameter n={number}")
    tries = (Try(1, False, 1.0, float(number), f"{failure.failure} {number}", detail=detail),)
    return TestRecord(f"{file}::test_{number}", file=file, state=State.RUNNING, tries=tries, traits=traits, host="here")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    labelled = labelled_failures()
    records = [record_of(number, labelled[number % len(labelled)]) for number in range(count + 200)]
    started = time.process_time()
    patterns = find_patterns(records[:count])
    print(f"{count:,} failures, {len(patterns)} patterns: {time.process_time() - started:.2f} s")
    index = PatternIndex()
    for record in records[:count]:
        index.update(record)
    index.patterns()
    spans = []
    for record in records[count:]:
        started = time.process_time()
        index.update(record)
        index.patterns()
        spans.append(time.process_time() - started)
    print(f"each further one: {statistics.median(spans) * 1e3:.2f} ms, at most {max(spans) * 1e3:.2f} ms")
    for name, is_held_out in (("tried on", False), ("held out", True)):
        chosen = [failure for failure in labelled if failure.is_held_out is is_held_out]
        found = measured(chosen)
        causes = len({failure.cause for failure in chosen})
        print(
            f"{name}: {len(chosen)} failures of {causes} causes, pairwise F1 {found.f1:.3f} "
            f"(precision {found.precision:.3f}, recall {found.recall:.3f})"
        )


if __name__ == "__main__":
    main()
