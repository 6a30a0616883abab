#include "frontends/cli/service_manager.h"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstring>

namespace tuck::cli {

Result<std::vector<int>, Error> take_inherited_sockets() {
  const int count = sd_listen_fds(/*unset_environment=*/1);
  if (count < 0) {
    return Error{Errc::invalid,
                 std::string("LISTEN_FDS: the sockets handed over cannot be taken: ") +
                     std::strerror(-count)};
  }
  std::vector<int> sockets;
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    const std::string name = "LISTEN_FDS: descriptor " + std::to_string(fd);
    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, /*listening=*/1) <= 0) {
      return Error{Errc::invalid, name +
                                      " is not a listening stream socket; use ListenStream= and "
                                      "Accept=no in the socket unit"};
    }
    sockets.push_back(fd);
  }
  return sockets;
}

void notify_ready(const std::string& status) {
  // A manager that is gone is no reason to stop serving; there is nobody else to tell.
  static_cast<void>(sd_notify(0, ("READY=1\nSTATUS=" + status).c_str()));
}

void notify_waiting(const std::string& status) {
  // A manager that gives up after its time-out would kill us: half a minute more, each time.
  static_cast<void>(
      sd_notify(0, ("STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nSTATUS=" + status).c_str()));
}

void notify_stopping() {
  static_cast<void>(sd_notify(0, "STOPPING=1\nSTATUS=Stopping"));
}

}  // namespace tuck::cli
