#include "tests/faults/scenario.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "tests/faults/wrapped_calls.h"

namespace tuck::test {

namespace {

constexpr uint32_t kClients = 2;
constexpr uint64_t kPieceBytes = 37'001;
constexpr uint32_t kSteps = 14;
constexpr int kPollMs = 10;

Change by_error(int error, bool lost) {
  if (lost) return {Change::End::lost, {}, {}};
  if (error == 0) return {};
  if (error == ENOSPC) return {Change::End::no_space, {}, {}};
  return {Change::End::broken, {}, "errno " + std::to_string(error)};
}

// What f returns, f being a call of the product.
template <class F>
auto exposed(F f) {
  const Exposed exposed;
  return f();
}

}  // namespace

// --- A client that may give up -----------------------------------------------------------------

PatientDisk::PatientDisk(Patience& patience) : handle_(nbd_create()), patience_(patience) {
  if (handle_ == nullptr) std::abort();
  nbd_add_meta_context(handle_, LIBNBD_CONTEXT_BASE_ALLOCATION);
}

PatientDisk::PatientDisk(const std::string& uri, Patience& patience) : PatientDisk(patience) {
  finish_connecting(nbd_aio_connect_uri(handle_, uri.c_str()));
}

PatientDisk::PatientDisk(int socket, Patience& patience) : PatientDisk(patience) {
  finish_connecting(nbd_aio_connect_socket(handle_, socket));
}

PatientDisk::~PatientDisk() {
  nbd_close(handle_);
}

void PatientDisk::finish_connecting(int result) {
  lost_ = result != 0;
  while (!lost_ && nbd_aio_is_ready(handle_) != 1) {
    lost_ = nbd_aio_is_dead(handle_) == 1 || nbd_aio_is_closed(handle_) == 1 ||
            nbd_poll(handle_, kPollMs) < 0 || patience_.gives_up();
  }
}

int PatientDisk::wait_for(int64_t cookie) {
  while (cookie >= 0 && !lost_) {
    const int completed = nbd_aio_command_completed(handle_, static_cast<uint64_t>(cookie));
    if (completed == 1) return 0;
    if (completed < 0) break;
    if (nbd_poll(handle_, kPollMs) < 0) break;
    if (patience_.gives_up()) lost_ = true;
  }
  const int error = nbd_get_errno();
  // An error reply leaves the connection ready; anything else ends it.
  if (nbd_aio_is_dead(handle_) == 1 || nbd_aio_is_closed(handle_) == 1) lost_ = true;
  return error == 0 ? EIO : error;
}

Change PatientDisk::change(int64_t cookie) {
  const int error = wait_for(cookie);
  return by_error(error, lost_);
}

Change PatientDisk::write(uint64_t offset, std::span<const std::byte> data) {
  return change(nbd_aio_pwrite(handle_, data.data(), data.size(), offset, NBD_NULL_COMPLETION, 0));
}
Change PatientDisk::zero(uint64_t offset, uint64_t bytes, bool keep_allocated) {
  return change(nbd_aio_zero(handle_, bytes, offset, NBD_NULL_COMPLETION,
                             keep_allocated ? LIBNBD_CMD_FLAG_NO_HOLE : 0));
}
Change PatientDisk::trim(uint64_t offset, uint64_t bytes) {
  return change(nbd_aio_trim(handle_, bytes, offset, NBD_NULL_COMPLETION, 0));
}
std::string PatientDisk::read(uint64_t offset, std::span<std::byte> out) {
  const int error =
      wait_for(nbd_aio_pread(handle_, out.data(), out.size(), offset, NBD_NULL_COMPLETION, 0));
  return error == 0 ? std::string() : "errno " + std::to_string(error);
}

std::string PatientDisk::others(uint64_t bytes) {
  if (lost_) return {};
  nbd_extent_callback extents{};
  extents.callback = [](void*, const char*, uint64_t, uint32_t*, size_t, int*) { return 0; };
  for (const int64_t cookie :
       {nbd_aio_flush(handle_, NBD_NULL_COMPLETION, 0),
        nbd_aio_cache(handle_, bytes, 0, NBD_NULL_COMPLETION, 0),
        nbd_aio_block_status(handle_, bytes, 0, extents, NBD_NULL_COMPLETION, 0)}) {
    const int error = wait_for(cookie);
    if (lost_) return {};
    if (error != 0) return "flush, cache or block status: errno " + std::to_string(error);
  }
  return {};
}

void PatientDisk::disconnect() {
  if (lost_ || nbd_aio_disconnect(handle_, 0) != 0) return;
  while (nbd_aio_is_closed(handle_) != 1 && nbd_aio_is_dead(handle_) != 1) {
    if (nbd_poll(handle_, kPollMs) < 0 || patience_.gives_up()) return;
  }
}

// --- The scenario ------------------------------------------------------------------------------

Scenario::Scenario(bool stores_wait) : stores_wait_(stores_wait) {
  // So that the server has to ask for more.
  const Immune immune;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 40);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
  for (uint32_t i = 0; i < kClients; ++i)
    owned_.emplace_back(kDiskBytes, kPieceBytes, i, kClients);
}

Scenario::~Scenario() {
  end();
}

std::string Scenario::uri() const {
  return "nbd+unix:///?socket=" + directory_.path("s");
}

bool Scenario::start() {
  const Immune immune;
  if (!engine_) {
    engine::EngineOptions options;
    options.reserve_bytes = 256u << 10;
    if (stores_wait_) options.empty_reserve = engine::EmptyReserve::wait;
    auto created = exposed([&] { return engine::Engine::create(options); });
    if (!created) return failed(created.error());
    engine_ = std::move(*created);
  }
  if (!disk_) {
    engine::AreaOptions area;
    area.name = "disk";
    area.slots = kDiskBytes / kPageSize;
    area.populate_table = stores_wait_;
    auto id = exposed([&] { return engine_->add_area(area); });
    if (!id) return failed(id.error());
    const Status wrong = exposed([&] {
      return engine_->set_codec(*id, {engine::CodecKind::zstd, 1});
    });
    if (wrong) {
      EXPECT_FALSE(engine_->remove_area(*id)) << "the area is not forgotten";
      return failed(*wrong);
    }
    disk_ = std::make_unique<vm::SwapArea>(*engine_, *id, kDiskBytes);
  }
  nbd::ServerOptions options;
  options.exports = {{"disk", "a disk", disk_.get(), false}};
  options.listen.emplace_back().unix_path = directory_.path("s");
  options.listen.emplace_back().tcp_host = "127.0.0.1";
  options.listen.back().tcp_port = 0;
  options.workers = 1;
  options.connections_max = 8;
  auto started = exposed([&] { return nbd::Server::start(std::move(options)); });
  if (!started) return failed(started.error());
  server_ = std::move(*started);
  return true;
}

void Scenario::blame(const char* where, const std::string& what) {
  if (!what.empty() && wrong_.empty()) wrong_ = std::string(where) + ": " + what;
}

bool Scenario::step(PatientDisk& disk, OwnedBytes& owned, Random& random, const char* who) {
  if (disk.lost()) return false;
  blame(who, owned.step(disk, random));
  return !disk.lost();
}

uint32_t Scenario::run_script(Patience& patience) {
  const Immune immune;
  Random random(++scripts_);
  uint32_t lost = 0;
  PatientDisk second(uri(), patience);
  {
    PatientDisk first(uri(), patience);
    blame("first client", first.others(kDiskBytes));
    for (uint32_t i = 0; i < kSteps; ++i) {
      step(first, owned_[0], random, "first client");
      step(second, owned_[1], random, "second client");
    }
    first.disconnect();
    lost += first.lost() ? 1u : 0u;
    // Its change may still be under way in the server: only who was not lost is followed at once.
    if (!first.lost()) {
      PatientDisk third(uri(), patience);
      for (uint32_t i = 0; i < kSteps; ++i)
        step(third, owned_[0], random, "third client");
      lost += third.lost() ? 1u : 0u;
      // Hangs up without a word.
    }
  }
  for (uint32_t i = 0; i < kSteps; ++i)
    step(second, owned_[1], random, "second client");
  second.disconnect();
  return lost + (second.lost() ? 1u : 0u);
}

void Scenario::check_service(Patience& patience) {
  const Immune immune;
  // A worker that could not be woken for a client is woken for the next one.
  PatientDisk(uri(), patience).disconnect();
  if (!eventually([this] { return server_->report().connections_now == 0; })) {
    blame("after the script", "connections are left");
    return;
  }
  {
    PatientDisk disk(uri(), patience);
    if (disk.lost()) return blame("after the script", "no new client is served");
    for (OwnedBytes& owned : owned_) {
      blame("what was lost", owned.settle_lost(disk));
      blame("afterwards", owned.check(disk));
    }
    if (disk.lost()) blame("after the script", "the client is lost");
  }
  if (run_script(patience) != 0) blame("after the script", "a client is lost");
  if (!eventually([this] { return server_->report().connections_now == 0; })) {
    blame("at the end", "connections are left");
  }
}

bool Scenario::failed(const Error& error) {
  message_ = error.message;
  EXPECT_EQ(error.code == Errc::no_space || error.code == Errc::invalid, true);
  return false;
}

void Scenario::end(bool socket_gone) {
  const Immune immune;
  Endless endless;
  std::unique_ptr<PatientDisk> connected;
  if (server_) {
    connected = std::make_unique<PatientDisk>(uri(), endless);
    const Exposed exposed;
    server_->stop();
    server_.reset();
  }
  disk_.reset();
  if (engine_) {
    {
      const Exposed exposed;
      engine_->quiesce();
    }
    engine_->verify();
    const Exposed exposed;
    engine_.reset();
  }
  connected.reset();
  if (socket_gone && std::filesystem::exists(directory_.path("s"))) {
    blame("at the end", "the socket is left");
  }
}

// --- What a process holds ----------------------------------------------------------------------

namespace {

uint64_t entries_of(const char* directory) {
  const auto entries = std::filesystem::directory_iterator(directory);
  return static_cast<uint64_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Holdings holdings() {
  const Immune immune;
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"), mapped_bytes()};
}

std::string to_string(const Holdings& holdings) {
  return std::to_string(holdings.descriptors) + " descriptors, " +
         std::to_string(holdings.threads) + " threads, " + std::to_string(holdings.mapped_bytes) +
         " bytes mapped";
}

}  // namespace tuck::test
