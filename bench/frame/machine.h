// The machine and the build that figures come from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tuck::bench {

// "2 x AMD EPYC, 24 GiB, Linux 6.18.1; RelWithDebInfo, GCC 12.2.0; lz4 1.9.4, zstd 1.5.4"
std::string machine_text();
nlohmann::ordered_json machine_json();

// What makes figures worth little here: a debug build, sanitizers, other work on the processors.
// Empty where there is nothing to say.
std::string machine_warning();

}  // namespace tuck::bench
