// What the main thread does while others serve: waits for the end, answers control clients.
#pragma once

#include <chrono>
#include <string>

#include "frontends/cli/control_server.h"
#include "frontends/cli/serve_options.h"
#include "frontends/cli/stop_signals.h"
#include "frontends/nbd/nbd.h"

namespace tuck::cli {

// Answers control clients until a stop signal comes (its name is returned), done_fd, if there is
// one, becomes readable, or so much time has passed ("" for both; negative: no limit).
std::string wait_for_end(StopSignals& signals, ControlServer* control, int done_fd,
                         std::chrono::milliseconds at_most = std::chrono::milliseconds(-1));

// A stop signal has come. Pages that are swapped out to us are nowhere else, and whoever they
// belong to dies without them: goes on serving until the clients have gone, and returns what ended
// the wait.
std::string stay_while_swapped_to(std::string reason, const ServeSettings& settings,
                                  const nbd::Server& server, StopSignals& signals,
                                  ControlServer* control);

}  // namespace tuck::cli
