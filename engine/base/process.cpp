// SPDX-License-Identifier: Apache-2.0
#include "engine/base/process.h"

#include <malloc.h>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace colibri {

void prepareProcess() {
#ifdef __GLIBC__
    // By default each core brings eight arenas, whose gaps add up to tens of megabytes while a
    // server runs. Threads here seldom allocate at the same time.
    mallopt(M_ARENA_MAX, 2);
#endif
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        // The lowest free number is taken, so the loop fills the gaps in order.
        // What is written to a closed standard output is lost, and has to fail.
        const int mode = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
        if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", mode);
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

int exitCodeOf(Code code) {
    switch (code) {
        case Code::Ok:
            return kOk;
        case Code::InvalidArgument:
            return kUsage;
        case Code::BadInput:
            return kBadInput;
        case Code::Unsupported:
            return kUnsupported;
        default:
            return kFailed;
    }
}

}  // namespace colibri
