// SPDX-License-Identifier: Apache-2.0
// Numbers in files, protocols and templates use a decimal point and English names regardless of the
// process's locale. Most code uses std::to_chars and std::from_chars; code that needs the C library
// (printf formats, strftime) uses a NeutralLocale.
#pragma once

#include <locale.h>

namespace colibri {

// Sets the C locale for this thread during its lifetime. Cheap: no allocation, no lock.
class NeutralLocale {
public:
    NeutralLocale();
    ~NeutralLocale();
    NeutralLocale(const NeutralLocale&) = delete;
    NeutralLocale& operator=(const NeutralLocale&) = delete;

private:
    locale_t m_before;
};

// For a program whose toolkit has set the user's locale: resets numbers, dates and the system's
// error texts to the C locale for all threads; keeps the user's character encoding. Call before
// other threads start.
void keepOnlyTheEncodingOfTheLocale();

}  // namespace colibri
