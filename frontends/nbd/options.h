// Looking at what the server was asked for, before anything is allocated.
#pragma once

#include "frontends/nbd/nbd.h"
#include "frontends/nbd/worker.h"

namespace tuck::nbd {

// What is wrong with them, if anything. Says nothing about where to listen.
Status check_options(const ServerOptions& options);

// For a worker of a server with these options, which outlive it; give_back is the caller's to set.
WorkerOptions worker_options_of(const ServerOptions& options, ClientLog& log);

}  // namespace tuck::nbd
