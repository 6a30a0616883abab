// The kernel's own swap onto zram, under the pressure of a program that asks for it: what
// unmapping, paging out and faulting in cost where the kernel does them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/frame/process.h"
#include "bench/frame/supervisor.h"
#include "bench/peers/swap_subject.h"
#include "bench/peers/zram_device.h"

namespace tuck::bench {

// The machine swaps to a device before all others, without readahead (page-cluster 0), while this
// is there. Both as before when it goes or the bench is killed; what others have swapped meanwhile
// is brought back then.
class SwappingOn {
 public:
  // Errors: the machine takes no swap, or the device is none for swapping.
  static Result<SwappingOn, Error> begin(const std::string& device);

 private:
  SwappingOn(Restored page_cluster, Restored off)
      : page_cluster_(std::move(page_cluster)), off_(std::move(off)) {}

  Restored page_cluster_;
  Restored off_;  // goes first
};

// A zram device for swapping, which the machine uses only between begin() and its object's end.
// Main thread only, and outlives what begin() returns.
class ZramSwap {
 public:
  // For this many bytes of swapped pages. Errors: those of ZramDevice; mkswap is missing. Starts a
  // program: when, see SwapSubject.
  static Result<ZramSwap, Error> create(const std::string& algorithm, uint64_t bytes);

  Result<SwappingOn, Error> begin() const { return SwappingOn::begin(device_.path()); }
  const ZramDevice& device() const noexcept { return device_; }

 private:
  explicit ZramSwap(ZramDevice device) : device_(std::move(device)) {}

  ZramDevice device_;
};

// The sizes of folios that the kernel makes for memory that asks for large ones: this one alone.
// All as before when this goes or the bench is killed.
class FolioSize {
 public:
  // kib: 4 (nothing is changed; a subject of this size asks for none), or 16 … 2048. Errors: this
  // kernel has no folios of that size, no root.
  static Result<FolioSize, Error> set(unsigned kib);

 private:
  std::vector<Restored> before_;
};

// tuck-swap-subject, driven. One command at a time; each returns when it is done, with what it
// took. It can be filled again after unmap(). Errors: what the subject says, or it is gone. Main
// thread only. To be started before what is measured in this process has its memory: a fork
// write-protects all of it, and each page faults once when it is written again.
class SwapSubject {
 public:
  static Result<SwapSubject, Error> start(unsigned folio_kib);

  // Whole pages. Copied into the subject's memory.
  Result<SwapAnswer, Error> fill(std::span<const std::byte> pages);
  Result<SwapAnswer, Error> pageout() { return command("pageout\n"); }
  Result<SwapAnswer, Error> fault_in_order() { return command("fault order\n"); }
  Result<SwapAnswer, Error> fault_at_random() { return command("fault random\n"); }
  Result<SwapAnswer, Error> unmap() { return command("unmap\n"); }

 private:
  explicit SwapSubject(Child child) : child_(std::move(child)) {}
  Result<SwapAnswer, Error> command(const std::string& line);
  Result<SwapAnswer, Error> answer();

  Child child_;
};

// Of the text of a setting's file, the choice that is on: "always [madvise] never". Nothing where
// there is none.
std::optional<std::string> chosen(const std::string& text);
// Above those in the text of /proc/swaps, as far as the kernel has one.
int priority_above(const std::string& proc_swaps);

}  // namespace tuck::bench
