// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/status.h"

namespace colibri {

// Starts a thread that debuggers and `top -H` show as `name` (15 characters at most). Errors:
// too many threads, or no memory for another one.
template <typename Run>
Status startThread(std::thread& thread, std::string name, Run run) {
    try {
        thread = std::thread([name = std::move(name), run = std::move(run)]() mutable {
            pthread_setname_np(pthread_self(), name.c_str());
            run();
        });
    } catch (const std::system_error& error) {
        return {Code::OutOfMemory, std::string("cannot start a thread: ") + error.what()};
    }
    return {};
}

}  // namespace colibri
