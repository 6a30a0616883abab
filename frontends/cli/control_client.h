// Asks a running server through its control socket.
#pragma once

#include <chrono>
#include <string>

#include "base/base.h"

namespace tuck::cli {

// Sends the line (without its newline) and returns everything that came back until the server
// closed. Errors say what to do: nobody there, not allowed, too slow, too long.
Result<std::string, Error> ask_control(const std::string& path, const std::string& line,
                                       std::chrono::milliseconds patience);

}  // namespace tuck::cli
