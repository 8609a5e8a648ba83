// SPDX-License-Identifier: Apache-2.0
#include "engine/api/host_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace colibri {

namespace {

// Copies one byte out (and back) by a system call, which answers EFAULT where an access would
// fault. Where the system refuses the question itself, the caller is trusted.
bool reachable(char* at, bool write) {
    char byte = 0;
    const iovec local{&byte, 1}, remote{at, 1};
    ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (n == 1 && write) n = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
    return n == 1 || errno != EFAULT;
}

}  // namespace

bool hostReadable(const void* data, size_t bytes) {
    auto* first = static_cast<char*>(const_cast<void*>(data));
    return bytes == 0 || (reachable(first, false) && reachable(first + bytes - 1, false));
}

bool hostWritable(void* data, size_t bytes) {
    auto* first = static_cast<char*>(data);
    return bytes == 0 || (reachable(first, true) && reachable(first + bytes - 1, true));
}

}  // namespace colibri
