// SPDX-License-Identifier: GPL-3.0-or-later
// Extends the HTTP library's server with limits: the number of connections, the time in which a
// request must arrive and its size, how long a client may stop reading, and a check whether it is
// still connected while its reply is computed.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>

#include "engine/base/status.h"

namespace colibri::serve {

using Clock = std::chrono::steady_clock;

struct ConnectionLimits {
    int connections = 128;                      // at a time; further ones get 503
    std::chrono::milliseconds idle{10'000};     // between two requests
    std::chrono::milliseconds request{15'000};  // from its first byte to its last
    std::chrono::milliseconds write{10'000};    // without the client reading a byte
    size_t bodyBytes = 4 << 20;
};

// One client. Used by its own thread; disconnected() may be called by any.
class Connection final : public httplib::Stream {
public:
    Connection(int socket, const ConnectionLimits& limits, const std::atomic<bool>& stopping);
    ~Connection() override;

    // The connection whose request this thread answers.
    static Connection& current();

    // False: no further request will arrive.
    bool awaitRequest();
    // After an error the rest of the client's data is ignored.
    void closeAfterReply() { m_closing = true; }
    bool closing() const { return m_closing; }
    // The client has disconnected, or the server is shutting down. A client that has only shut down
    // its sending side still waits for its reply and is not disconnected.
    bool disconnected() const;
    // Whether it is time to write a byte to a client that has shut down its sending side: only that
    // shows whether it is waiting or has disconnected. At once, then at growing intervals.
    bool probeDue();
    // For a reply that has not begun: sends the next byte of "HTTP/1.1 ", with which every reply
    // begins. The reply itself then continues after these bytes.
    void probe();
    bool stopping() const { return m_stopping.load(std::memory_order_relaxed); }
    // Shuts down the sending side and reads for a moment, so that unread input does not lose the
    // reply.
    void linger();

    bool is_readable() const override;
    bool is_writable() const override { return !disconnected(); }
    ssize_t read(char* to, size_t size) override;
    ssize_t write(const char* from, size_t size) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string& ip, int& port) const override;
    socket_t socket() const override { return m_socket; }

private:
    bool fill();

    const int m_socket;
    const ConnectionLimits& m_limits;
    const std::atomic<bool>& m_stopping;
    Clock::time_point m_deadline;  // of the arriving request
    size_t m_budget = 0;           // bytes it may still send
    bool m_closing = false;
    size_t m_probed = 0;            // bytes of the reply sent as probes
    Clock::time_point m_nextProbe;  // of the current request
    std::chrono::milliseconds m_probePause{0};
    std::string m_buffer;  // received but not consumed
    size_t m_at = 0;
};

class HttpServer : public httplib::Server {
public:
    explicit HttpServer(const ConnectionLimits& limits);

    // Listens on an address; `port` 0: any. Returns the port, or 0 on failure.
    int bindTo(const std::string& host, int port);
    // Why bindTo failed.
    static Status whyNot(const std::string& host, int port);
    // Stops accepting, and wakes all threads that wait for input or are about to wait for a token.
    void end();
    bool ending() const { return m_ending.load(std::memory_order_relaxed); }
    int connections() const { return m_count.load(std::memory_order_relaxed); }
    // Connections refused because the limit was reached.
    uint64_t refusedConnections() const {
        return m_refusedConnections.load(std::memory_order_relaxed);
    }

private:
    bool process_and_close_socket(socket_t socket) override;
    void serveConnection(int socket);

    const ConnectionLimits m_limits;
    int m_listener = -1;
    std::atomic<bool> m_ending{false};
    std::atomic<int> m_count{0};
    std::atomic<uint64_t> m_refusedConnections{0};
    std::mutex m_mutex;
    std::set<int> m_sockets;  // open ones
};

}  // namespace colibri::serve
