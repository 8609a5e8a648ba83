// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace colibri::serve {

namespace {

constexpr size_t kHeaderBytes = 64 << 10;
constexpr size_t kReadBytes = 16 << 10;
constexpr int kRefusers = 4;  // threads that reject clients while all others are busy
constexpr std::chrono::milliseconds kLinger{1000}, kLastWrite{500};
constexpr size_t kLingerBytes = 256 << 20;
constexpr std::chrono::milliseconds kFirstProbePause{500};
constexpr std::string_view kReplyBegins = "HTTP/1.1 ";
constexpr const char* kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    "Connection: close\r\nContent-Length: 107\r\n\r\n"
    "{\"error\":{\"message\":\"too many connections. Try again later\",\"type\":\"server_error\","
    "\"param\":null,\"code\":503}}";

thread_local Connection* t_current = nullptr;

// Waits for an event of one socket. False: `until` passed.
bool waitFor(int socket, short events, Clock::time_point until) {
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd p{socket, events, 0};
        const int n = poll(&p, 1, int(std::clamp<int64_t>(left, 0, 1 << 20)));
        if (n > 0) return true;
        if (n == 0 || errno != EINTR) return false;
    }
}

// The current state of a socket: those of `events` that are set, errors, and a full hang-up.
short stateOf(int socket, short events) {
    pollfd p{socket, events, 0};
    return poll(&p, 1, 0) > 0 ? p.revents : short(0);
}

void addressOf(int socket, bool remote, std::string& ip, int& port) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "0";
    const int failed =
        remote ? getpeername(socket, plain, &length) : getsockname(socket, plain, &length);
    if (failed || getnameinfo(plain, length, host, sizeof(host), service, sizeof(service),
                              NI_NUMERICHOST | NI_NUMERICSERV)) {
        return;
    }
    ip = host;
    port = std::atoi(service);
}

}  // namespace

Connection::Connection(int socket, const ConnectionLimits& limits,
                       const std::atomic<bool>& stopping)
    : m_socket(socket), m_limits(limits), m_stopping(stopping) {
    t_current = this;
}

Connection::~Connection() {
    t_current = nullptr;
}

Connection& Connection::current() {
    return *t_current;
}

bool Connection::awaitRequest() {
    m_buffer.erase(0, m_at);
    m_at = 0;
    if (m_buffer.empty() && !waitFor(m_socket, POLLIN, Clock::now() + m_limits.idle)) return false;
    m_deadline = Clock::now() + m_limits.request;
    m_budget = kHeaderBytes + m_limits.bodyBytes;
    m_probed = 0;
    m_nextProbe = {};
    m_probePause = {};
    return !stopping() && (!m_buffer.empty() || fill());
}

bool Connection::disconnected() const {
    return stopping() || (stateOf(m_socket, 0) & (POLLERR | POLLHUP)) != 0;
}

bool Connection::probeDue() {
    if (!(stateOf(m_socket, POLLRDHUP) & POLLRDHUP) || Clock::now() < m_nextProbe) return false;
    m_probePause = std::max(kFirstProbePause, 2 * m_probePause);
    m_nextProbe = Clock::now() + m_probePause;
    return true;
}

void Connection::probe() {
    if (m_probed == kReplyBegins.size()) return;
    const ssize_t n = send(m_socket, &kReplyBegins[m_probed], 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == 1) ++m_probed;
}

bool Connection::is_readable() const {
    return m_at < m_buffer.size() || waitFor(m_socket, POLLIN, m_deadline);
}

bool Connection::fill() {
    m_buffer.resize(kReadBytes);
    m_at = 0;
    ssize_t n = -1;
    while (waitFor(m_socket, POLLIN, m_deadline)) {
        n = recv(m_socket, m_buffer.data(), m_buffer.size(), MSG_DONTWAIT);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN)) break;
    }
    m_buffer.resize(size_t(std::max<ssize_t>(n, 0)));
    return n > 0;
}

ssize_t Connection::read(char* to, size_t size) {
    size = std::min(size, m_budget);
    if (size == 0 || (m_at == m_buffer.size() && !fill())) {
        closeAfterReply();
        return -1;
    }
    const size_t n = std::min(size, m_buffer.size() - m_at);
    std::copy_n(m_buffer.data() + m_at, n, to);
    m_at += n;
    m_budget -= n;
    return ssize_t(n);
}

ssize_t Connection::write(const char* from, size_t size) {
    Clock::time_point deadline = Clock::now() + m_limits.write;
    size_t done = std::min(size, std::exchange(m_probed, 0));  // the client already has these bytes
    while (done < size) {
        if (stopping()) deadline = std::min(deadline, Clock::now() + kLastWrite);
        const Clock::time_point slice = std::min(deadline, Clock::now() + kLastWrite);
        const bool ready = waitFor(m_socket, POLLOUT, slice);
        const ssize_t n =
            ready ? send(m_socket, from + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (n > 0) {
            done += size_t(n);
            deadline = Clock::now() + m_limits.write;
        } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
            break;
        } else if (Clock::now() >= deadline) {
            break;
        }
    }
    if (done == size) return ssize_t(size);
    closeAfterReply();
    return -1;
}

void Connection::linger() {
    shutdown(m_socket, SHUT_WR);
    const Clock::time_point until = Clock::now() + kLinger;
    std::string rest(kReadBytes, '\0');
    for (size_t total = 0; total < kLingerBytes && !stopping();) {
        if (!waitFor(m_socket, POLLIN, until)) return;
        const ssize_t n = recv(m_socket, rest.data(), rest.size(), MSG_DONTWAIT);
        if (n <= 0 || Clock::now() >= until) return;
        total += size_t(n);
    }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
    addressOf(m_socket, true, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
    addressOf(m_socket, false, ip, port);
}

HttpServer::HttpServer(const ConnectionLimits& limits) : m_limits(limits) {
    new_task_queue = [n = size_t(limits.connections + kRefusers)] {
        return new httplib::ThreadPool(n);
    };
    // The library's default options would let two servers share a port.
    set_socket_options([this](socket_t socket) {
        const int on = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        m_listener = socket;
    });
    set_payload_max_length(limits.bodyBytes);
}

namespace {

// URLs and users write "[::1]", the system expects "::1".
std::string withoutBrackets(const std::string& host) {
    return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

Status HttpServer::whyNot(const std::string& host, int port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const std::string text = std::to_string(port);
    const int unknown = getaddrinfo(withoutBrackets(host).c_str(), text.c_str(), &wanted, &found);
    if (unknown) {
        return {
            Code::InvalidArgument,
            "cannot listen on \"" + host + "\": unknown host name (" + gai_strerror(unknown) + ")",
            "Give an address or a name of this machine"};
    }
    int error = 0;
    if (const int trial = ::socket(found->ai_family, SOCK_STREAM, 0); trial >= 0) {
        const int on = 1;
        setsockopt(trial, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (::bind(trial, found->ai_addr, found->ai_addrlen) != 0) error = errno;
        ::close(trial);
    }
    freeaddrinfo(found);
    const std::string what = "cannot listen on " + host + ", port " + text;
    if (error == EADDRNOTAVAIL) {
        return {Code::InvalidArgument, what + ": this machine does not have the address",
                "Give an address or a name of this machine"};
    }
    if (error == EACCES) {
        return {Code::IoError, what + ": permission denied",
                "Choose a port from 1024 up, or 0 for a free port"};
    }
    return {Code::IoError, what,
            "Another program may use it: choose another port, or 0 for a free port"};
}

int HttpServer::bindTo(const std::string& given, int port) {
    const std::string host = withoutBrackets(given);
    if (port == 0) {
        port = std::max(0, bind_to_any_port(host));
    } else if (!bind_to_port(host, port)) {
        port = 0;
    }
    // The library compiles its queue length in as 5. When the queue overflows, Linux answers with
    // SYN cookies and some of the clients that connect at the same time get a connection reset.
    if (port) ::listen(m_listener, m_limits.connections);
    return port;
}

void HttpServer::end() {
    m_ending.store(true);
    stop();
    std::lock_guard lock(m_mutex);
    for (const int socket : m_sockets) shutdown(socket, SHUT_RD);
}

bool HttpServer::process_and_close_socket(socket_t socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (m_count.fetch_add(1) < m_limits.connections) {
        {
            std::lock_guard lock(m_mutex);
            m_sockets.insert(socket);
        }
        try {
            if (!ending()) serveConnection(socket);
        } catch (const std::bad_alloc&) {  // only this connection ends
        }
        std::lock_guard lock(m_mutex);
        m_sockets.erase(socket);
    } else {
        m_refusedConnections.fetch_add(1, std::memory_order_relaxed);
        send(socket, kFull, std::char_traits<char>::length(kFull), MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(socket, SHUT_RDWR);
    }
    m_count.fetch_sub(1);
    close(socket);
    return true;
}

void HttpServer::serveConnection(int socket) {
    Connection connection(socket, m_limits, m_ending);
    while (connection.awaitRequest()) {
        bool closed = false;
        // Ranges are ignored: no response supports them.
        const auto setUp = [](httplib::Request& request) { request.ranges.clear(); };
        const bool ok = process_request(connection, ending(), closed, setUp);
        if (!ok || closed || connection.closing()) break;
    }
    connection.linger();
}

}  // namespace colibri::serve
