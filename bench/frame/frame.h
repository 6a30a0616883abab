// Façade of bench/frame/: what all tables share.
//
//   table       a function that fills a report (table.h); one file in bench/tables/
//   contestant  one of the things that a table compares: tuck, or a peer
//   round       every contestant's turn, once (rounds.h)
//   series      one figure's values, a round each (series.h); medians are shown
//   supervisor  leaves the machine as it was, however the bench ends (supervisor.h)
//
// Where to read on: table.h, rounds.h, report.h.
#pragma once

#include "bench/frame/pages.h"       // IWYU pragma: export
#include "bench/frame/process.h"     // IWYU pragma: export
#include "bench/frame/progress.h"    // IWYU pragma: export
#include "bench/frame/report.h"      // IWYU pragma: export
#include "bench/frame/rounds.h"      // IWYU pragma: export
#include "bench/frame/series.h"      // IWYU pragma: export
#include "bench/frame/stopwatch.h"   // IWYU pragma: export
#include "bench/frame/supervisor.h"  // IWYU pragma: export
#include "bench/frame/table.h"       // IWYU pragma: export
