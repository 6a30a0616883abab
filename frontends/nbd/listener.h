// The thread that waits for clients on all listening sockets and hands them on.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "frontends/nbd/client_log.h"
#include "frontends/nbd/listen_socket.h"

namespace tuck::nbd {

class Listener {
 public:
  // Called for each client, which it owns from then on.
  using OnClient = std::function<void(int fd)>;

  Listener(ClientLog& log, OnClient on_client);
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
  std::vector<std::string> uris() const;

 private:
  void run() noexcept;
  bool accept_from(int fd) noexcept;
  void prepare(int client) noexcept;

  ClientLog& log_;
  const OnClient on_client_;
  std::vector<ListenSocket> sockets_;
  std::vector<std::string> uris_;
  int stop_fd_ = -1;
  std::atomic<bool> begun_{false};  // begin()'s release pairs with the wait in run()
  std::thread thread_;
};

}  // namespace tuck::nbd
