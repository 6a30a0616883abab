#include "tests/nbd/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/nbd/handshake.h"

namespace tuck::test {

namespace {

template <class T>
T expect(Result<T, Error> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "cannot set the disk up: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

}  // namespace

std::string header(uint16_t command, uint64_t cookie, uint64_t offset, uint32_t length,
                   uint16_t flags) {
  return be32(nbd::kRequestMagic) + be16(flags) + be16(command) + be64(cookie) + be64(offset) +
         be32(length);
}

Disk::Disk(DiskOptions options) {
  options.engine.background_thread = false;
  engine_ = expect(engine::Engine::create(options.engine));
  engine::AreaOptions area;
  area.name = "disk";
  area.slots = (options.bytes + kPageSize - 1) / kPageSize;
  area.codec = options.codec;
  area_ = std::make_unique<vm::SwapArea>(*engine_, expect(engine_->add_area(area)), options.bytes);
}

std::vector<std::byte> Disk::contents() {
  std::vector<std::byte> out(area_->size_bytes());
  const vm::ByteResult result = area_->read(0, out);
  if (result.code != Errc::ok) out.clear();
  return out;
}

void Disk::clear() {
  const auto pages = static_cast<uint32_t>((area_->size_bytes() + kPageSize - 1) / kPageSize);
  (void)area_->free_run(SlotIndex{0}, pages);
}

Machine::Machine(Disk& disk, MachineOptions options)
    : disk_(disk),
      export_{"disk", "", &disk.area(), options.read_only},
      ticket_(&ticket_notified, this),
      receive_(nbd::kReceiveBytes),
      send_(2 * nbd::kSendBytes) {
  in_.reset(receive_);
  out_.reset({std::span(send_).first(nbd::kSendBytes), std::span(send_).last(nbd::kSendBytes)});
  nbd::Negotiated agreed;
  agreed.export_ = &export_;
  agreed.size_bytes = disk.area().size_bytes();
  agreed.structured_replies = options.structured;
  agreed.base_allocation = options.base_allocation;
  agreed.transmission_flags = options.read_only ? nbd::kFlagReadOnly : uint16_t{0};
  transmission_ = std::make_unique<nbd::Transmission>(agreed, ticket_, counters_);
}

Machine::~Machine() {
  while (ticket_.waiting())
    disk_.engine().maintain();
}

void Machine::ticket_notified(engine::Ticket& ticket) noexcept {
  static_cast<Machine*>(ticket.context())->notified_ = true;
}

size_t Machine::receive(std::string_view bytes, uint64_t at_ns) {
  const auto room = in_.free_part();
  const size_t taken = std::min(room.size(), bytes.size());
  if (taken == 0) return 0;
  std::memcpy(room.data(), bytes.data(), taken);
  in_.received(taken, at_ns);
  return taken;
}

std::string Machine::take(size_t most) {
  const auto ready = out_.to_send();
  const size_t bytes = std::min(most, ready.size());
  std::string taken(reinterpret_cast<const char*>(ready.data()), bytes);
  out_.sent(bytes);
  return taken;
}

nbd::Progress Machine::turn() {
  const nbd::Progress progress = run();
  while (!out_.empty())
    heard_ += take();
  return progress;
}

nbd::Progress Machine::turns() {
  for (;;) {
    const nbd::Progress progress = turn();
    if (progress != nbd::Progress::yields && progress != nbd::Progress::needs_room) return progress;
  }
}

bool Machine::make_room() {
  disk_.engine().maintain();
  if (!std::exchange(notified_, false)) return false;
  transmission_->notified();
  return true;
}

const nbd::OperationCounters& Machine::operation(nbd::Operation which) const {
  return counters_.operations[static_cast<size_t>(which)];
}

}  // namespace tuck::test
