// What a fault is let loose upon: a small engine, a server, and a fixed script of clients, with an
// oracle for every byte that they write.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "frontends/nbd/nbd.h"
#include "tests/faults/disk.h"
#include "tests/nbd/test_server.h"

namespace tuck::test {

// How long a client waits for an answer.
class Patience {
 public:
  virtual ~Patience() = default;
  // Asked again and again while an answer is outstanding.
  virtual bool gives_up() = 0;
};

// Waits for ever; the watchdog does not.
class Endless final : public Patience {
 public:
  bool gives_up() override { return false; }
};

// libnbd, asynchronously, so that it can give up.
class PatientDisk final : public Disk {
 public:
  // lost() where it did not work.
  PatientDisk(const std::string& uri, Patience& patience);
  // Over a connected socket, owned from now on.
  PatientDisk(int socket, Patience& patience);
  ~PatientDisk() override;
  Change write(uint64_t offset, std::span<const std::byte> data) override;
  Change zero(uint64_t offset, uint64_t bytes, bool keep_allocated) override;
  Change trim(uint64_t offset, uint64_t bytes) override;
  std::string read(uint64_t offset, std::span<std::byte> out) override;
  bool lost() const override { return lost_; }

  // Says goodbye and waits for the end.
  void disconnect();
  // FLUSH, CACHE and BLOCK_STATUS of the first bytes; the message of what went wrong.
  std::string others(uint64_t bytes);

 private:
  explicit PatientDisk(Patience& patience);
  void finish_connecting(int result);
  // 0, or an errno.
  int wait_for(int64_t cookie);
  Change change(int64_t cookie);

  nbd_handle* handle_;
  Patience& patience_;
  bool lost_ = false;
};

// The parts that may fail to start, and what is started of them.
class Scenario {
 public:
  static constexpr uint64_t kDiskBytes = 3u << 20;

  explicit Scenario(bool stores_wait);
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  ~Scenario();

  // Starts what has not been started. False: failed with an error, which message() is.
  bool start();
  const std::string& message() const { return message_; }
  nbd::Server& server() { return *server_; }
  engine::Engine& engine() { return *engine_; }
  std::string uri() const;

  // Two clients at once, then a third. How many of them were lost; wrong() says what was wrong.
  uint32_t run_script(Patience& patience);
  // All that was written is there, by way of a client that must not be lost, and a script of its
  // own works; then all clients are gone.
  void check_service(Patience& patience);
  // Stops while a client is connected, and takes everything down. Must the socket's file be gone?
  void end(bool socket_gone = true);
  // Empty: all was as it should be.
  const std::string& wrong() const { return wrong_; }

 private:
  bool failed(const Error& error);
  void blame(const char* where, const std::string& what);
  bool step(PatientDisk& disk, OwnedBytes& owned, Random& random, const char* who);

  TemporaryDirectory directory_;
  const bool stores_wait_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<vm::SwapArea> disk_;
  std::unique_ptr<nbd::Server> server_;
  std::vector<OwnedBytes> owned_;
  std::string message_;
  std::string wrong_;
  uint64_t scripts_ = 0;
};

// What a process holds that must be given back.
struct Holdings {
  uint64_t descriptors = 0;
  uint64_t threads = 0;
  int64_t mapped_bytes = 0;

  friend bool operator==(const Holdings&, const Holdings&) = default;
};
Holdings holdings();
std::string to_string(const Holdings& holdings);

}  // namespace tuck::test
