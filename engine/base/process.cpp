// SPDX-License-Identifier: Apache-2.0
#include "engine/base/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace colibri {

void prepareProcess() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        // The lowest free number is taken, so the loop fills the gaps in order.
        if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace colibri
