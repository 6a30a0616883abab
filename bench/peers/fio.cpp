#include "bench/peers/fio.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/frame/process.h"

namespace tuck::bench {

namespace {

using Json = nlohmann::json;

// Start, connection and report.
constexpr double kMoreSeconds = 30;

// fio's buffers are noise of which 60 percent are zeroes. Real pages are not to be had: of a
// --buffer_pattern='FILE' it takes the first 512 bytes, over and over (3.33).
Command command_for(const FioJob& job, const std::string& uri, uint64_t bytes, double seconds) {
  return {
      {"fio", "--name=tuck", "--ioengine=nbd", "--uri=" + uri, fmt::format("--rw={}", job.rw),
       fmt::format("--bs={}", job.bs), fmt::format("--iodepth={}", job.depth),
       fmt::format("--size={}", bytes), fmt::format("--runtime={}ms", std::llround(seconds * 1000)),
       "--time_based", "--randrepeat=0", "--buffer_compress_percentage=60", "--refill_buffers",
       // Its own processes would outlive it when it is killed.
       "--thread", "--eta=never", "--output-format=json"},
      {}};
}

Result<FioFigures, Error> parse(const std::string& output, bool writes) {
  // Warnings may stand before the object and behind it.
  const size_t begin = output.find('{');
  const size_t end = output.rfind('}');
  if (begin == std::string::npos || end < begin) return Error{Errc::invalid, "fio printed no JSON"};
  try {
    const Json json = Json::parse(output.substr(begin, end + 1 - begin));
    const Json& job = json.at("jobs").at(0);
    const Json& side = job.at(writes ? "write" : "read");
    if (job.at("error").get<int>() != 0 || side.at("total_ios").get<uint64_t>() == 0)
      return Error{Errc::invalid, "fio's requests failed"};
    const Json& percentiles = side.at("clat_ns").at("percentile");
    return FioFigures{side.at("iops").get<double>(), side.at("bw_bytes").get<double>() / 1e6,
                      percentiles.at("50.000000").get<double>() / 1e3,
                      percentiles.at("99.000000").get<double>() / 1e3};
  } catch (const Json::exception& error) {
    return Error{Errc::invalid, fmt::format("fio's JSON is not understood: {}", error.what())};
  }
}

}  // namespace

Result<FioFigures, Error> run_fio(const FioJob& job, const std::string& uri, uint64_t bytes,
                                  double seconds) {
  const auto output = run(command_for(job, uri, bytes, seconds), seconds + kMoreSeconds);
  if (!output) return output.error();
  return parse(*output, std::string_view(job.rw).find("write") != std::string_view::npos);
}

}  // namespace tuck::bench
