// Façade of base/: the words that all layers share. Other folders include only this.
#pragma once

#include "base/annotations.h"    // IWYU pragma: export
#include "base/backoff.h"        // IWYU pragma: export
#include "base/check.h"          // IWYU pragma: export
#include "base/claim_array.h"    // IWYU pragma: export
#include "base/epoch.h"          // IWYU pragma: export
#include "base/histogram.h"      // IWYU pragma: export
#include "base/memory_source.h"  // IWYU pragma: export
#include "base/mutex.h"          // IWYU pragma: export
#include "base/result.h"         // IWYU pragma: export
#include "base/sync_point.h"     // IWYU pragma: export
#include "base/text_table.h"     // IWYU pragma: export
#include "base/types.h"          // IWYU pragma: export
#include "base/units.h"          // IWYU pragma: export
