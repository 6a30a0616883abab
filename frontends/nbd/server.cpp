// The server: options checked, everything allocated, threads started and stopped.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "frontends/nbd/buffers.h"
#include "frontends/nbd/client_log.h"
#include "frontends/nbd/connection_slots.h"
#include "frontends/nbd/descriptor_limit.h"
#include "frontends/nbd/listener.h"
#include "frontends/nbd/nbd.h"
#include "frontends/nbd/options.h"
#include "frontends/nbd/worker.h"

namespace tuck::nbd {

namespace {

constexpr unsigned kWorkersDefaultMax = 4;
// What stop() gives clients to take their last replies.
constexpr std::chrono::seconds kGrace{5};

// Its ring and its eventfd.
constexpr uint64_t kDescriptorsAWorker = 2;
// The listener's eventfd and a client that is to be refused; the rest is for the program around:
// its control socket's clients, files of /proc, a cold tier.
constexpr uint64_t kDescriptorsBesides = 32;

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)),
        listener_(log_, options_.peers,
                  [this](int fd, std::optional<Peer> peer) { take(fd, peer); }) {}
  ~Impl() { stop(); }

  Status start();
  void stop() noexcept;
  const std::vector<std::string>& uris() const noexcept { return listener_.uris(); }
  ServerReport report() const noexcept;

 private:
  void take(int fd, std::optional<Peer> peer) noexcept;

  const ServerOptions options_;
  ClientLog log_;
  ConnectionSlots slots_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  Listener listener_;
  uint64_t clients_seen_ = 0;  // the listener's
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> refused_{0};
};

Status Server::Impl::start() {
  if (Status error = check_options(options_)) return error;
  if (options_.listen.empty()) {
    return Error{Errc::invalid, "there is no place to listen"};
  }
  const unsigned count = options_.workers != 0 ? options_.workers
                                               : std::clamp(std::thread::hardware_concurrency(), 1u,
                                                            kWorkersDefaultMax);
  if (Status error =
          make_room_for_descriptors(options_.connections_max + count * kDescriptorsAWorker +
                                    options_.listen.size() + kDescriptorsBesides)) {
    return error;
  }
  if (Status error = slots_.allocate(options_.connections_max, options_.in_flight_bytes_max,
                                     options_.keep_buffers)) {
    return error;
  }
  // Nothing that may fail comes between a thread's start and its end of the promise.
  threads_.reserve(count);
  workers_.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    WorkerOptions worker = worker_options_of(options_, log_);
    worker.give_back = [this](Connection& connection) { slots_.give_back(connection); };
    workers_.push_back(std::make_unique<Worker>(std::move(worker)));
    const std::string name = fmt::format("tuck-nbd-{}", i);
    std::promise<Status> opened;
    std::future<Status> outcome = opened.get_future();
    threads_.emplace_back([this_worker = workers_.back().get(), &opened] {
      Status error = or_no_memory("a worker's ring", [&] { return this_worker->open(); });
      const bool ok = !error;
      opened.set_value(std::move(error));
      if (ok) this_worker->run();
    });
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
    if (Status error = outcome.get()) return error;
  }
  if (Status error = listener_.open(options_.listen)) return error;
  listener_.start();
  if (options_.ready) {
    if (Status error = options_.ready()) return error;
  }
  listener_.begin();
  return std::nullopt;
}

void Server::Impl::stop() noexcept {
  listener_.stop();
  for (const auto& worker : workers_)
    worker->stop(kGrace);
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
}

// On the listener's thread.
void Server::Impl::take(int fd, std::optional<Peer> peer) noexcept {
  const uint64_t number = ++clients_seen_;
  Connection* connection = slots_.take();
  if (connection == nullptr) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    log_.write(spdlog::level::warn, "client {}: refused, the limit of {} connections is reached{}",
               number, options_.connections_max, PeerText(peer).c_str());
    close(fd);
    return;
  }
  accepted_.fetch_add(1, std::memory_order_relaxed);
  Worker* least = workers_.front().get();
  for (const auto& worker : workers_) {
    if (worker->load() < least->load()) least = worker.get();
  }
  least->expect_one();
  connection->hand_over(*least, fd, fd, number, peer);
  least->post(*connection);
}

ServerReport Server::Impl::report() const noexcept {
  ServerReport report;
  report.connections_max = options_.connections_max;
  report.peers_refused = listener_.refused();
  const BlockPool& blocks = slots_.memory().transmitting;
  report.in_flight_bytes = blocks.in_use() * blocks.block_bytes();
  report.in_flight_bytes_max = blocks.blocks() * blocks.block_bytes();
  report.connections_accepted = accepted_.load(std::memory_order_relaxed);
  report.connections_refused = refused_.load(std::memory_order_relaxed);
  try {
    report.operations.resize(kOperations);
    for (size_t i = 0; i < kOperations; ++i)
      report.operations[i].name = kOperationNames[i];
  } catch (const std::bad_alloc&) {
    report.operations.clear();
    report.complete = false;
  }
  for (const auto& worker : workers_) {
    const WorkerCounters& counters = std::as_const(*worker).counters();
    report.connections_now += worker->load();
    report.connections_serving += counters.connections_serving.get();
    report.entries_refused += counters.entries_refused.get();
    report.negotiations_timed_out += counters.negotiations_timed_out.get();
    report.negotiations_over_limits += counters.negotiations_over_limits.get();
    report.stalled_requests += counters.stalled_requests.get();
    report.stalled_replies += counters.stalled_replies.get();
    report.negotiations_failed += counters.negotiations_failed.get();
    report.connections_broken += counters.connections_broken.get();
    report.requests_pending += counters.requests_pending.get();
    for (size_t i = 0; i < report.operations.size(); ++i) {
      const OperationCounters& from = counters.operations[i];
      OperationReport& to = report.operations[i];
      to.requests += from.requests.get();
      to.errors += from.errors.get();
      to.bytes += from.bytes.get();
      from.latency.add_to(to.latency_ns);
    }
  }
  return report;
}

// --- Façade ----------------------------------------------------------------------------------

Server::Server(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>, Error> Server::start(ServerOptions options) {
  return or_no_memory("the server", [&]() -> Result<std::unique_ptr<Server>, Error> {
    auto impl = std::make_unique<Impl>(std::move(options));
    if (const Status error = impl->start()) return *error;
    return std::unique_ptr<Server>(new Server(std::move(impl)));
  });
}

void Server::stop() noexcept {
  impl_->stop();
}
const std::vector<std::string>& Server::uris() const noexcept {
  return impl_->uris();
}
ServerReport Server::report() const noexcept {
  return impl_->report();
}

}  // namespace tuck::nbd
