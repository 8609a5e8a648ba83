// SPDX-License-Identifier: Apache-2.0
// Keeps a session file within a size while it is being recorded: removes the oldest detail, and
// keeps what is removed as exact totals and histograms.
//
// First the layer steps, reads, evictions and prefetches go, which are most of a file; if that is
// not enough, also the oldest tokens, steps and samples. Requests, knobs and marks always stay. The
// table `totals` holds the sums of the removed rows, `histograms` the counts of their raw values,
// and `meta` says up to which time rows are missing (thinned_detail_before, thinned_tokens_before).
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "profiler/session/sqlite.h"

namespace colibri {

extern const char* const kThinningSchemaSql;

// Bytes of a database that hold data; pages that were freed are used again.
Result<int64_t> usedBytes(sqlite3* db, const std::string& path);

// Removes about one fiftieth of the rows, oldest first, within the caller's transaction. Does
// nothing if there is too little to remove.
Status thinOldest(sqlite3* db, const std::string& path, bool tokensToo);

}  // namespace colibri
