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
#include "frontends/nbd/listener.h"
#include "frontends/nbd/nbd.h"
#include "frontends/nbd/options.h"
#include "frontends/nbd/worker.h"

namespace tuck::nbd {

namespace {

constexpr unsigned kWorkersDefaultMax = 4;
// What stop() gives clients to take their last replies.
constexpr std::chrono::seconds kGrace{5};

}  // namespace

class Server::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)), listener_(log_, [this](int fd) { take(fd); }) {}
  ~Impl() { stop(); }

  Status start();
  void stop() noexcept;
  std::vector<std::string> uris() const { return listener_.uris(); }
  ServerReport report() const;

 private:
  void take(int fd) noexcept;

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
  if (Status error = slots_.allocate(options_.connections_max)) return error;
  const unsigned count = options_.workers != 0 ? options_.workers
                                               : std::clamp(std::thread::hardware_concurrency(), 1u,
                                                            kWorkersDefaultMax);
  for (unsigned i = 0; i < count; ++i) {
    WorkerOptions worker = worker_options_of(options_, log_);
    worker.give_back = [this](Connection& connection) { slots_.give_back(connection); };
    workers_.push_back(std::make_unique<Worker>(std::move(worker)));
    std::promise<Status> opened;
    threads_.emplace_back([this_worker = workers_.back().get(), &opened] {
      Status error = this_worker->open();
      const bool ok = !error;
      opened.set_value(std::move(error));
      if (ok) this_worker->run();
    });
    pthread_setname_np(threads_.back().native_handle(), fmt::format("tuck-nbd-{}", i).c_str());
    if (Status error = opened.get_future().get()) return error;
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
void Server::Impl::take(int fd) noexcept {
  const uint64_t number = ++clients_seen_;
  Connection* connection = slots_.take();
  if (connection == nullptr) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    log_.write(spdlog::level::warn, "client {}: refused, the limit of {} connections is reached",
               number, options_.connections_max);
    close(fd);
    return;
  }
  accepted_.fetch_add(1, std::memory_order_relaxed);
  Worker* least = workers_.front().get();
  for (const auto& worker : workers_) {
    if (worker->load() < least->load()) least = worker.get();
  }
  least->expect_one();
  connection->hand_over(*least, fd, fd, number);
  least->post(*connection);
}

ServerReport Server::Impl::report() const {
  ServerReport report;
  report.connections_accepted = accepted_.load(std::memory_order_relaxed);
  report.connections_refused = refused_.load(std::memory_order_relaxed);
  report.operations.resize(kOperations);
  for (size_t i = 0; i < kOperations; ++i)
    report.operations[i].name = kOperationNames[i];
  for (const auto& worker : workers_) {
    const WorkerCounters& counters = std::as_const(*worker).counters();
    report.connections_now += worker->load();
    report.connections_serving += counters.connections_serving.get();
    report.negotiations_failed += counters.negotiations_failed.get();
    report.connections_broken += counters.connections_broken.get();
    report.requests_pending += counters.requests_pending.get();
    for (size_t i = 0; i < kOperations; ++i) {
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
  auto impl = std::make_unique<Impl>(std::move(options));
  if (const Status error = impl->start()) return *error;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::stop() noexcept {
  impl_->stop();
}
std::vector<std::string> Server::uris() const {
  return impl_->uris();
}
ServerReport Server::report() const {
  return impl_->report();
}

}  // namespace tuck::nbd
