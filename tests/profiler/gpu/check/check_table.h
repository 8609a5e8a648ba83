// SPDX-License-Identifier: GPL-3.0-or-later
// The results of tests/gpu-check: one row for each check, printed as they come.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

class CheckTable {
public:
    void pass(const char* check, const std::string& measured) { row("pass", check, measured); }
    void fail(const char* check, const std::string& measured) {
        ++m_failed;
        row("FAIL", check, measured);
    }
    void notAvailable(const char* check, const std::string& reason) { row("n/a", check, reason); }
    void info(const char* check, const std::string& measured) { row("info", check, measured); }
    void expect(bool met, const char* check, const std::string& measured) {
        met ? pass(check, measured) : fail(check, measured);
    }
    int failed() const { return m_failed; }

private:
    static void row(const char* result, const char* check, const std::string& text) {
        std::printf("%-5s %-44s %s\n", result, check, text.c_str());
        std::fflush(stdout);
    }
    int m_failed = 0;
};

// "12 of 12 spans"
[[gnu::format(printf, 1, 2)]] inline std::string textOf(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}
