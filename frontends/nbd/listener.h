// The thread that waits for clients on all listening sockets and hands them on.
#pragma once

#include <poll.h>
#include <atomic>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "frontends/nbd/client_log.h"
#include "frontends/nbd/listen_socket.h"
#include "frontends/nbd/peer.h"

namespace tuck::nbd {

class Listener {
 public:
  // Called for each client, which it owns from then on. On TCP nobody knows who it is.
  using OnClient = std::function<void(int fd, std::optional<Peer> peer)>;

  Listener(ClientLog& log, PeerPolicy policy, OnClient on_client);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  Status open(const std::vector<ListenAddress>& addresses);
  // Starts the thread, which waits for begin().
  void start();
  // Clients are accepted from now on.
  void begin() noexcept;
  // No client is handed on after this has returned; the sockets are closed.
  void stop() noexcept;
  const std::vector<std::string>& uris() const noexcept { return uris_; }
  // Clients that the policy turned away.
  uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  void run() noexcept;
  bool accept_from(const ListenSocket& socket) noexcept;
  void take(int client, bool is_unix) noexcept;
  bool may_connect(const Peer& peer) const noexcept;

  ClientLog& log_;
  const PeerPolicy policy_;
  const OnClient on_client_;
  std::vector<ListenSocket> sockets_;
  std::vector<std::string> uris_;
  std::vector<pollfd> waited_;  // the thread's: the stop, then the sockets
  std::atomic<uint64_t> refused_{0};
  int stop_fd_ = -1;
  std::atomic<bool> stop_asked_{false};  // for when the descriptor cannot be waited for
  std::atomic<bool> begun_{false};       // begin()'s release pairs with the wait in run()
  std::thread thread_;
};

}  // namespace tuck::nbd
