// What a service manager (systemd, or anything that speaks sd_notify(3) and sd_listen_fds(3)) hands
// over and wants to hear. Without one, nothing here does anything.
#pragma once

#include <string>
#include <vector>

#include "base/base.h"

namespace tuck::cli {

// The listening stream sockets handed over (LISTEN_FDS), which the caller owns from then on.
// Errors: one of them is something else. To be called once, before any thread starts.
Result<std::vector<int>, Error> take_inherited_sockets();

// READY=1: tuck serves. status is shown by `systemctl status`.
void notify_ready(const std::string& status);
// STOPPING=1, but not before somebody else is done; to be called again within half a minute for as
// long as that takes.
void notify_waiting(const std::string& status);
// STOPPING=1.
void notify_stopping();

}  // namespace tuck::cli
