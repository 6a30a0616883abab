// What the engine can say about itself. All sizes in bytes unless named pages; counters count from
// the engine's start. Taken without stopping anything: figures of one snapshot may be some calls
// apart, and are exact when nothing runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "engine/codec_setting.h"

namespace tuck::engine {

// What is stored now.
struct ContentStats {
  uint64_t pages_stored = 0;       // all kinds below
  uint64_t pages_same_filled = 0;  // kept in the entry alone
  uint64_t pages_compressed = 0;
  uint64_t pages_incompressible = 0;  // kept raw
  uint64_t bytes_compressed = 0;      // payload of compressed and incompressible pages
};

// What was done since the start.
struct OperationStats {
  uint64_t pages_stored = 0;
  uint64_t pages_loaded = 0;        // stored pages decoded or filled
  uint64_t pages_loaded_empty = 0;  // never stored, read as zeroes
  uint64_t pages_freed = 0;
  uint64_t stores_no_space = 0;   // calls refused: memory limit or system
  uint64_t stores_pending = 0;    // calls told to wait for room
  uint64_t reserve_misses = 0;    // the reserve was empty, stores did not populate: pressure
  uint64_t store_if_changed = 0;  // read-modify-writes that had to go again
  uint64_t loads_corrupt = 0;     // stored bytes that did not decode
};

struct AreaStats {
  AreaId id{};
  std::string name;
  uint64_t slots = 0;
  CodecSetting codec;
  ContentStats content;
};

struct Stats {
  // False: there was no memory for the figures, and nothing is filled in.
  bool complete = true;
  ContentStats content;
  OperationStats operations;
  std::vector<AreaStats> areas;
  allocator::Ledger ledger;  // of the pool; its parts add up to what the kernel says is resident
  uint64_t slot_table_bytes = 0;    // resident leaves of all areas' slot tables
  uint64_t memory_limit_bytes = 0;  // 0: none
  uint64_t retired_objects = 0;     // unpublished, waiting for readers to leave
};

}  // namespace tuck::engine
