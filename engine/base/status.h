// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: the error reporting of all functions that can fail. No exception leaves a
// module.
//
// A message says what happened and where (file, tensor, byte), the hint says what to do next.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace colibri {

enum class Code {
    Ok,
    InvalidArgument,  // a wrong flag or value; command line exit 2
    BadInput,         // a damaged, missing or inconsistent file; exit 3
    Unsupported,      // recognised, but not supported by this program; exit 4
    IoError,          // the system refused or failed a read or write; exit 1
    NoSpace,          // disk full
    OutOfMemory,
    Cancelled,
    Busy,  // queue full
    Internal,
};

class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Code code, std::string message, std::string hint = {})
        : m_code(code), m_message(std::move(message)), m_hint(std::move(hint)) {}

    bool ok() const { return m_code == Code::Ok; }
    Code code() const { return m_code; }
    const std::string& message() const { return m_message; }
    const std::string& hint() const { return m_hint; }
    // "message. hint" for terminals and logs.
    std::string text() const { return m_hint.empty() ? m_message : m_message + ". " + m_hint; }
    // The same status with a prefix: "where: message".
    Status in(const std::string& where) const {
        return ok() ? *this : Status(m_code, where + ": " + m_message, m_hint);
    }

private:
    Code m_code = Code::Ok;
    std::string m_message, m_hint;
};

template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : m_value(std::move(value)) {}
    Result(Status status) : m_value(std::move(status)) { assert(!std::get<Status>(m_value).ok()); }

    bool ok() const { return m_value.index() == 0; }
    explicit operator bool() const { return ok(); }
    Status status() const { return ok() ? Status() : std::get<Status>(m_value); }
    // REQUIRES: ok()
    T& value() & { return std::get<T>(m_value); }
    const T& value() const& { return std::get<T>(m_value); }
    T&& value() && { return std::get<T>(std::move(m_value)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::get<T>(std::move(m_value)); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

private:
    std::variant<T, Status> m_value;
};

}  // namespace colibri

// Returns from the function with the status if it is an error.
#define COLIBRI_TRY(expr)                                       \
    do {                                                        \
        if (::colibri::Status s_ = (expr); !s_.ok()) return s_; \
    } while (0)
