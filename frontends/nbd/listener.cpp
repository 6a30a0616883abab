#include "frontends/nbd/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tuck::nbd {

namespace {

// Then the other sockets, and whoever wants to stop the thread, have their turn.
constexpr int kAcceptsARound = 64;
// When the process is out of descriptors or memory, accepting is tried again after this long.
constexpr int kRetryMs = 100;
// Room for a burst of replies without a sleep in between; the kernel's own bound may be lower.
constexpr int kSendBufferBytes = 1 << 20;

}  // namespace

Listener::Listener(ClientLog& log, OnClient on_client)
    : log_(log), on_client_(std::move(on_client)) {}

Listener::~Listener() {
  stop();
  if (stop_fd_ >= 0) close(stop_fd_);
}

Status Listener::open(const std::vector<ListenAddress>& addresses) {
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (stop_fd_ < 0) {
    return Error{Errc::no_space, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  }
  sockets_.reserve(addresses.size());
  for (const ListenAddress& address : addresses) {
    auto socket = ListenSocket::open(address);
    if (!socket) return socket.error();
    uris_.push_back(socket->uri());
    sockets_.push_back(std::move(*socket));
  }
  return std::nullopt;
}

void Listener::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "tuck-listen");
}

void Listener::begin() noexcept {
  begun_.store(true, std::memory_order_release);
  begun_.notify_one();
}

void Listener::stop() noexcept {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(stop_fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    begin();
    thread_.join();
  }
  sockets_.clear();
}

std::vector<std::string> Listener::uris() const {
  return uris_;
}

void Listener::run() noexcept {
  std::vector<pollfd> waited{{stop_fd_, POLLIN, 0}};
  for (const ListenSocket& socket : sockets_)
    waited.push_back({socket.fd(), POLLIN, 0});
  bool out_of_resources = false;
  begun_.wait(false, std::memory_order_acquire);
  for (;;) {
    // Out of resources: only the stop is waited for, or the listening socket would spin.
    const auto count = static_cast<nfds_t>(out_of_resources ? 1 : waited.size());
    const int ready = poll(waited.data(), count, out_of_resources ? kRetryMs : -1);
    if (ready < 0 && errno != EINTR) {
      spdlog::error("no clients are accepted any more: poll: {}", std::strerror(errno));
      return;
    }
    if (ready > 0 && (waited[0].revents & POLLIN) != 0) return;
    out_of_resources = false;
    for (size_t i = 1; i < waited.size(); ++i) {
      if (!accept_from(waited[i].fd)) out_of_resources = true;
    }
  }
}

// The clients that wait there, or the first of them. False: the system has no room for more now.
bool Listener::accept_from(int fd) noexcept {
  for (int attempt = 0; attempt < kAcceptsARound; ++attempt) {
    const int client = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      prepare(client);
      on_client_(client);
      continue;
    }
    switch (errno) {
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        log_.write(spdlog::level::err, "cannot accept a client: {}; trying again",
                   std::strerror(errno));
        return false;
      case EAGAIN:
        return true;
      // A client that has gone already, or an error of its network, says nothing about the next
      // one.
      default:
        break;
    }
    if (errno == EINVAL || errno == EBADF || errno == ENOTSOCK) return false;
  }
  return true;
}

void Listener::prepare(int client) noexcept {
  // Forced where we may, else as much as the system allows; neither is needed for it to work.
  if (setsockopt(client, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes) !=
      0) {
    setsockopt(client, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
  }
  // Fails on Unix sockets, which need it not.
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid != 0) {
    log_.write(spdlog::level::debug, "a client connects: process {}, user {}", peer.pid, peer.uid);
  }
}

}  // namespace tuck::nbd
