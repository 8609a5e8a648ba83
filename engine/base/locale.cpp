// SPDX-License-Identifier: Apache-2.0
#include "engine/base/locale.h"

#include <clocale>
#include <initializer_list>

namespace colibri {

NeutralLocale::NeutralLocale() {
    static const locale_t neutral = newlocale(LC_ALL_MASK, "C", locale_t());
    m_before = uselocale(neutral);
}

NeutralLocale::~NeutralLocale() {
    uselocale(m_before);
}

void keepOnlyTheEncodingOfTheLocale() {
    for (const int category : {LC_NUMERIC, LC_TIME, LC_MONETARY, LC_COLLATE, LC_MESSAGES})
        std::setlocale(category, "C");
}

}  // namespace colibri
