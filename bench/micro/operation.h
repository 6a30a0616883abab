// Operations that tuck-micro measures: each a small piece of one layer, done many times in a row.
// One list for both modes, times and instruction counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tuck::bench::micro {

// Owns what the operation works on. Errors abort: a benchmark that works on nothing measures
// nothing.
class Work {
 public:
  virtual ~Work() = default;
  // Not timed: makes the next run() possible, and leaves things as they were before the last one.
  virtual void prepare() {}
  // The operation, Operation::batch times.
  virtual void run() = 0;
};

struct Operation {
  std::string name;   // layer/what/of what
  std::string pages;  // what it works on, for the label
  uint32_t batch;     // operations a run(), so many that starting a clock does not show
  bool counted;       // tools/micro --instructions has it
  // entries: pages, objects, requests to work on, a multiple of batch.
  std::unique_ptr<Work> (*make)(uint64_t entries);
};

std::vector<Operation> allocator_operations();
std::vector<Operation> engine_operations();
std::vector<Operation> same_filled_operations();
std::vector<Operation> request_operations();

}  // namespace tuck::bench::micro
