// A socket that clients connect to: a path, a loopback address, or one that was handed over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "frontends/nbd/nbd.h"

namespace tuck::nbd {

class ListenSocket {
 public:
  // Binds and listens. The error says what to do.
  static Result<ListenSocket, Error> open(const ListenAddress& address);

  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&&) = delete;
  // Closes it, and takes its path away if it is still the same file.
  ~ListenSocket();

  int fd() const noexcept { return fd_; }
  // The system knows who connects.
  bool is_unix() const noexcept { return is_unix_; }
  // As NBD clients take it.
  const std::string& uri() const noexcept { return uri_; }

 private:
  ListenSocket() noexcept = default;
  Status open_unix(const std::string& path);
  Status open_tcp(const std::string& host, uint16_t port);
  Status adopt(int fd);
  Status listen_and_name();

  int fd_ = -1;
  bool is_unix_ = false;
  std::string uri_;
  std::string path_;  // that we made; "" if none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace tuck::nbd
