// The NBD commands, as they travel: numbers of the protocol's text, not the server's own constants.
#pragma once

#include <cstdint>

namespace tuck::test {

inline constexpr uint16_t kRead = 0;
inline constexpr uint16_t kWrite = 1;
inline constexpr uint16_t kDisconnect = 2;
inline constexpr uint16_t kFlush = 3;
inline constexpr uint16_t kTrim = 4;
inline constexpr uint16_t kCache = 5;
inline constexpr uint16_t kWriteZeroes = 6;
inline constexpr uint16_t kBlockStatus = 7;

}  // namespace tuck::test
