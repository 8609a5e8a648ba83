// SPDX-License-Identifier: Apache-2.0
// Numbers in files, protocols and templates have a decimal point and English names whatever locale
// the process is in. Most code gets that from std::to_chars and std::from_chars; what has to use
// the C library (printf's formats, strftime) does it under a NeutralLocale.
#pragma once

#include <locale.h>

namespace colibri {

// The C locale for this thread while it lives. Cheap: no allocation, no lock.
class NeutralLocale {
public:
    NeutralLocale();
    ~NeutralLocale();
    NeutralLocale(const NeutralLocale&) = delete;
    NeutralLocale& operator=(const NeutralLocale&) = delete;

private:
    locale_t m_before;
};

// For a program whose toolkit has put the process into the user's locale: numbers, dates and the
// system's error texts become neutral again for all threads; the character encoding stays the
// user's. Call before other threads start.
void keepOnlyTheEncodingOfTheLocale();

}  // namespace colibri
