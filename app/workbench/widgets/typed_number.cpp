// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/typed_number.h"

#include <QRegularExpression>
#include <cmath>

namespace colibri::ui {
namespace {

// ASCII digits, '.', ',', sign and exponent of the typed text; spaces are removed, also narrow
// ones.
QString plainForm(const QString& text) {
    QString plain;
    for (const QChar c : text) {
        if (c.isSpace()) continue;
        if (c.digitValue() >= 0)
            plain += QChar('0' + c.digitValue());
        else if (c == QChar(0x066B))
            plain += '.';  // Arabic decimal mark
        else if (c == QChar(0x066C))
            plain += ',';  // Arabic mark between thousands
        else if (c == QChar(0x2212))
            plain += '-';
        else
            plain += c;
    }
    return plain;
}

// Whether every separator is between groups of three digits: "1,024", "12,345,678".
bool isGrouped(const QString& whole, QChar mark) {
    static const QRegularExpression commas("^[+-]?[1-9]\\d{0,2}(,\\d{3})+$");
    static const QRegularExpression points("^[+-]?[1-9]\\d{0,2}(\\.\\d{3})+$");
    return (mark == ',' ? commas : points).match(whole).hasMatch();
}

}  // namespace

std::optional<double> typedNumber(const QString& text) {
    QString plain = plainForm(text);
    const qsizetype point = plain.lastIndexOf('.'), comma = plain.lastIndexOf(',');
    if (point >= 0 && comma >= 0) {
        // The last separator is the decimal one; the other one must separate thousands.
        const QChar decimal = point > comma ? '.' : ',', thousands = point > comma ? ',' : '.';
        const QString whole = plain.section(decimal, 0, -2);
        if (!isGrouped(whole, thousands)) return std::nullopt;
        plain = QString(whole).remove(thousands) + "." + plain.section(decimal, -1);
    } else if (comma >= 0) {
        if (isGrouped(plain, ','))
            plain.remove(',');
        else
            plain.replace(',', '.');
    } else if (plain.count('.') > 1 && isGrouped(plain, '.')) {
        plain.remove('.');
    }
    bool ok = false;
    const double value = plain.toDouble(&ok);
    return ok && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<qint64> typedWhole(const QString& text) {
    const auto value = typedNumber(text);
    constexpr double kLargest = 9e15;  // every whole number up to it is exact
    if (!value || *value != std::trunc(*value) || std::abs(*value) > kLargest) return std::nullopt;
    return qint64(*value);
}

}  // namespace colibri::ui
