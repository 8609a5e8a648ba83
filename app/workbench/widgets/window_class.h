// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace colibri::ui {

// The width of the window; all its parts are arranged by it.
enum class WindowClass { Small, Compact, Normal, Large };  // from 0, 1000, 1280, 1920 px on

constexpr WindowClass windowClassOf(int width) {
    return width < 1000   ? WindowClass::Small
           : width < 1280 ? WindowClass::Compact
           : width < 1920 ? WindowClass::Normal
                          : WindowClass::Large;
}

}  // namespace colibri::ui
