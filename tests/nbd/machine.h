// The transmission machine between two buffers, without any I/O: a test plays the client, the
// kernel's sockets and the background thread, each a step at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "frontends/nbd/transmission.h"

namespace tuck::test {

// A request's 28 bytes.
std::string header(uint16_t command, uint64_t cookie, uint64_t offset, uint32_t length,
                   uint16_t flags = 0);

struct DiskOptions {
  uint64_t bytes = 4u << 20;
  engine::CodecSetting codec;
  // Without a background thread in any case: maintain() is called by hand.
  engine::EngineOptions engine;
};

// An engine with one swap area.
class Disk {
 public:
  explicit Disk(DiskOptions options = {});
  vm::SwapArea& area() { return *area_; }
  engine::Engine& engine() { return *engine_; }
  std::vector<std::byte> contents();
  // All zeroes again.
  void clear();

 private:
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> area_;
};

struct MachineOptions {
  bool structured = false;
  bool base_allocation = false;
  bool read_only = false;
};

class Machine {
 public:
  // The disk outlives the machine.
  explicit Machine(Disk& disk, MachineOptions options = {});
  // Nothing waits for the disk any more.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Bytes that come in, as many as there is room for; returns how many.
  size_t receive(std::string_view bytes, uint64_t at_ns = 1);
  // One turn.
  nbd::Progress run() { return transmission_->run(in_, out_); }
  // The client takes replies, at most so many bytes in one go.
  std::string take(size_t most = SIZE_MAX);
  // One turn, and all that it said is taken and kept for heard().
  nbd::Progress turn();
  // Turns for as long as it has something to do by itself.
  nbd::Progress turns();
  std::string heard() { return std::exchange(heard_, {}); }
  // The background works once. True: the machine was waiting for that, and has been told.
  bool make_room();

  const nbd::OperationCounters& operation(nbd::Operation which) const;
  const nbd::WorkerCounters& counters() const { return counters_; }
  const char* reason() const { return transmission_->reason(); }
  bool inside_request() const { return transmission_->inside_request(); }
  size_t unread() const { return in_.size(); }

 private:
  static void ticket_notified(engine::Ticket& ticket) noexcept;

  Disk& disk_;
  const nbd::Export export_;
  bool notified_ = false;
  engine::Ticket ticket_;
  std::vector<std::byte> receive_;
  std::vector<std::byte> send_;
  nbd::WorkerCounters counters_;
  nbd::ReceiveBuffer in_;
  nbd::SendBuffers out_;
  std::unique_ptr<nbd::Transmission> transmission_;
  std::string heard_;
};

}  // namespace tuck::test
