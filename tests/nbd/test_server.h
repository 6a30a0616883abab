// An engine with two disks, served on a Unix socket and on TCP in a directory of its own.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "frontends/nbd/nbd.h"

namespace tuck::test {

struct TestServerOptions {
  uint64_t disk_bytes = 64u << 20;
  uint64_t second_bytes = (1u << 20) + 100;
  engine::CodecSetting codec;
  engine::EngineOptions engine;
  // exports and listen are filled in.
  nbd::ServerOptions server;
  bool tcp = false;
};

// A directory that goes away with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class TestServer {
 public:
  // Ends the process with a message where the server does not start.
  explicit TestServer(TestServerOptions options = {});
  // Stops, and has the engine look at itself.
  ~TestServer();

  nbd::Server& server() { return *server_; }
  engine::Engine& engine() { return *engine_; }
  nbd::ServerReport report() const { return server_->report(); }
  nbd::OperationReport operation(const std::string& name) const;
  void stop();

  std::string socket_path() const { return directory_.path("s"); }
  // "disk", "second" (read-only), or "" for the default export.
  std::string unix_uri(const std::string& name = "") const;
  std::string tcp_uri(const std::string& name = "") const;

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> disk_;
  std::unique_ptr<vm::SwapArea> second_;
  std::unique_ptr<nbd::Server> server_;
  bool stopped_ = false;
};

// Waits until a condition holds; false if it does not for so long that something must be wrong.
template <class Condition>
bool eventually(Condition condition);

}  // namespace tuck::test

#include <chrono>
#include <thread>

template <class Condition>
bool tuck::test::eventually(Condition condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}
