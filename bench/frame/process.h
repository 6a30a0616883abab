// Other programs: peers and load generators. They die with the worker that started them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/base.h"

namespace tuck::bench {

struct Command {
  std::vector<std::string> words;        // program (looked for in PATH) and arguments
  std::vector<std::string> environment;  // NAME=VALUE, besides our own
};

// Where PATH has this program; empty: nowhere. System folders are looked at even where PATH lacks
// them, as a plain user's does.
std::string program_path(const std::string& name);

// Where one of our own programs is: beside this one.
std::string own_program(const std::string& name);

// A program that runs beside us. Main thread only: it dies when the thread that started it does.
class Child {
 public:
  // Standard input, output and errors: /dev/null, or a pipe that the other functions use.
  static Result<Child, Error> start(const Command& command, bool with_pipes = false);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  // As stop().
  ~Child();

  pid_t pid() const noexcept { return pid_; }
  bool runs();
  // SIGTERM, and SIGKILL after five seconds; waits for its end.
  void stop() noexcept;

  // With pipes only. One line without its end, waited for at most this long; false: none came.
  bool read_line(std::string& line, double seconds);
  bool write(const void* data, size_t bytes);
  // What was read behind the last whole line.
  const std::string& rest() const noexcept { return read_ahead_; }
  // Waits for its end and returns its exit status, 128 + the signal that ended it, or -1.
  int reap() noexcept;

 private:
  Child(pid_t pid, int input, int output) noexcept : pid_(pid), input_(input), output_(output) {}

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string read_ahead_;
};

// Runs a program to its end and returns what it printed. Errors: it cannot be started, took longer
// than this, or ended with a status other than 0 (the message has the end of its output).
Result<std::string, Error> run(const Command& command, double seconds_max);

// Anonymous memory of a process that is resident, as the kernel counts it page by page; 0: no such
// process. pid 0: this one.
uint64_t anonymous_bytes(pid_t pid = 0);

}  // namespace tuck::bench
