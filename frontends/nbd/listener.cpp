#include "frontends/nbd/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
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

void prepare(int client) noexcept {
  // Forced where we may, else as much as the system allows; neither is needed for it to work.
  if (setsockopt(client, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes) !=
      0) {
    setsockopt(client, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
  }
  // Fails on Unix sockets, which need it not.
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<Peer> peer_of(int client) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return Peer{peer.pid, peer.uid};
}

}  // namespace

Listener::Listener(ClientLog& log, PeerPolicy policy, OnClient on_client)
    : log_(log), policy_(std::move(policy)), on_client_(std::move(on_client)) {}

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
  waited_.push_back({stop_fd_, POLLIN, 0});
  for (const ListenSocket& socket : sockets_)
    waited_.push_back({socket.fd(), POLLIN, 0});
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
    // Release: pairs with the load in run().
    stop_asked_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    // There is no other way to tell it.
    while (write(stop_fd_, &one, sizeof one) < 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    begin();
    thread_.join();
  }
  sockets_.clear();
}

void Listener::run() noexcept {
  bool out_of_resources = false;
  begun_.wait(false, std::memory_order_acquire);
  for (;;) {
    // Out of resources: only the stop is waited for, or the listening socket would spin.
    const auto count = static_cast<nfds_t>(out_of_resources ? 1 : waited_.size());
    const int ready = poll(waited_.data(), count, out_of_resources ? kRetryMs : -1);
    if (ready < 0) {
      if (errno == EINTR) continue;
      // The kernel has no memory to wait with. The clients that wait are seen to all the same.
      log_.write(spdlog::level::err, "cannot wait for clients: poll: {}; trying again",
                 std::strerror(errno));
      std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
      waited_[0].revents = 0;
      if (stop_asked_.load(std::memory_order_acquire)) return;
    }
    if (ready > 0 && (waited_[0].revents & POLLIN) != 0) return;
    out_of_resources = false;
    for (size_t i = 1; i < waited_.size(); ++i) {
      if (!accept_from(sockets_[i - 1])) out_of_resources = true;
    }
  }
}

// The clients that wait there, or the first of them. False: the system has no room for more now.
bool Listener::accept_from(const ListenSocket& socket) noexcept {
  for (int attempt = 0; attempt < kAcceptsARound; ++attempt) {
    const int client = accept4(socket.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) {
      take(client, socket.is_unix());
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

void Listener::take(int client, bool is_unix) noexcept {
  std::optional<Peer> peer;
  if (is_unix) {
    peer = peer_of(client);
    // Who cannot be told is nobody that may.
    if (!peer || !may_connect(*peer)) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      log_.write(spdlog::level::warn, "a client is refused{}: this user may not connect",
                 PeerText(peer).c_str());
      close(client);
      return;
    }
  }
  prepare(client);
  on_client_(client, peer);
}

bool Listener::may_connect(const Peer& peer) const noexcept {
  return policy_.any_user || peer.user == 0 || peer.user == geteuid() ||
         std::find(policy_.users.begin(), policy_.users.end(), peer.user) != policy_.users.end();
}

}  // namespace tuck::nbd
