// SPDX-License-Identifier: GPL-3.0-or-later
// The Fusion style with the icons of this program, which appear in file dialogs and questions.
#pragma once

#include <QProxyStyle>

namespace colibri::ui {

class ThemedStyle : public QProxyStyle {
    Q_OBJECT

public:
    ThemedStyle() : QProxyStyle("Fusion") {}
    QIcon standardIcon(StandardPixmap which, const QStyleOption* option,
                       const QWidget* widget) const override;
    QPixmap standardPixmap(StandardPixmap which, const QStyleOption* option,
                           const QWidget* widget) const override;
};

}  // namespace colibri::ui
