// Exit statuses of every command.
#pragma once

namespace tuck::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // something went wrong; one line on standard error says what
inline constexpr int kExitUsage = 2;   // the command line was wrong

}  // namespace tuck::cli
