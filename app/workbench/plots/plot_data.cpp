// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_data.h"

#include <QString>
#include <algorithm>
#include <cmath>
#include <limits>

namespace colibri::ui {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

size_t sampleCount(const SeriesData& data) {
    return std::min(data.t.size(), data.y.size());
}

// First index with t >= value.
size_t lowerIndex(const SeriesData& data, double value) {
    const auto end = data.t.begin() + std::ptrdiff_t(sampleCount(data));
    return size_t(std::lower_bound(data.t.begin(), end, value) - data.t.begin());
}

}  // namespace

VisibleStats visibleStats(const SeriesData& data, double lower, double upper) {
    VisibleStats stats{kNan, kNan, kNan, kNan};
    double sum = 0;
    size_t n = 0;
    for (size_t i = lowerIndex(data, lower); i < sampleCount(data) && data.t[i] <= upper; ++i) {
        const double y = data.y[i];
        if (!std::isfinite(y)) continue;
        stats.last = y;
        stats.min = n ? std::min(stats.min, y) : y;
        stats.max = n ? std::max(stats.max, y) : y;
        sum += y;
        ++n;
    }
    if (n) stats.mean = sum / double(n);
    return stats;
}

void decimate(const SeriesData& data, double lower, double upper, int columns,
              QVector<double>* keys, QVector<double>* values) {
    keys->clear();
    values->clear();
    const size_t n = sampleCount(data);
    if (n == 0 || upper <= lower || columns < 1) return;
    size_t begin = lowerIndex(data, lower);
    if (begin > 0) --begin;
    size_t end = lowerIndex(data, upper);
    end = std::min(n, end + 1);
    keys->reserve(2 * columns + 4);
    values->reserve(2 * columns + 4);
    const auto put = [&](size_t i) {
        keys->push_back(data.t[i]);
        values->push_back(data.y[i]);
    };
    constexpr size_t kNone = std::numeric_limits<size_t>::max();
    size_t low = kNone, high = kNone;
    long column = std::numeric_limits<long>::min();
    const auto flush = [&] {
        if (low == kNone) return;
        put(std::min(low, high));
        if (low != high) put(std::max(low, high));
        low = high = kNone;
    };
    bool gap = false;
    for (size_t i = begin; i < end; ++i) {
        if (!std::isfinite(data.y[i])) {
            flush();
            if (!gap) put(i);  // one NaN for the whole gap
            gap = true;
            continue;
        }
        const long at = long(std::floor((data.t[i] - lower) / (upper - lower) * columns));
        if (at != column || gap) {
            flush();
            column = at;
            low = high = i;
        } else {
            if (data.y[i] < data.y[low]) low = i;
            if (data.y[i] > data.y[high]) high = i;
        }
        gap = false;
    }
    flush();
}

double valueAt(const SeriesData& data, double t, double reach) {
    const size_t n = sampleCount(data);
    if (n == 0) return kNan;
    const size_t right = lowerIndex(data, t);
    size_t best = std::min(right, n - 1);
    if (right > 0 && std::abs(data.t[right - 1] - t) < std::abs(data.t[best] - t)) best = right - 1;
    return std::abs(data.t[best] - t) <= reach ? data.y[best] : kNan;
}

std::vector<Stretch> overLimit(const SeriesData& data, double limit, double lower, double upper) {
    std::vector<Stretch> out;
    bool open = false;
    for (size_t i = lowerIndex(data, lower); i < sampleCount(data) && data.t[i] <= upper; ++i) {
        const bool over = std::isfinite(data.y[i]) && data.y[i] > limit;
        if (over && !open) out.push_back({data.t[i], data.t[i]});
        if (open || over) out.back().to = data.t[i];
        open = over;
    }
    return out;
}

bool sameSeries(const SeriesData& a, const SeriesData& b) {
    if (a.t.size() != b.t.size() || a.unavailable != b.unavailable) return false;
    if (a.t.empty()) return true;
    const bool gaps = std::isnan(a.y.back()) && std::isnan(b.y.back());
    return a.t.back() == b.t.back() && (gaps || a.y.back() == b.y.back());
}

bool sameMarkers(const std::vector<Marker>& a, const std::vector<Marker>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Marker& x, const Marker& y) {
        return x.t == y.t && x.effect == y.effect && x.measured == y.measured && x.to == y.to &&
               x.settling == y.settling && x.refining == y.refining && x.low == y.low &&
               x.high == y.high && x.reason == y.reason;
    });
}

double niceStep(double max) {
    if (!(max > 0) || !std::isfinite(max)) return 0.25;
    const double decade = std::pow(10, std::floor(std::log10(max)) - 1);
    for (const double scale : {1.0, 10.0, 100.0})
        for (const double mantissa : {1.0, 2.0, 2.5, 4.0, 5.0})
            if (std::floor(max / (mantissa * decade * scale) + 1e-9) <= 4)
                return mantissa * decade * scale;
    return max;
}

double timeStep(double span, double width) {
    static constexpr double kSteps[] = {0.1, 0.2, 0.5, 1,   2,   5,    10,   15,   30,
                                        60,  120, 300, 600, 900, 1800, 3600, 7200, 14400};
    const double most = std::clamp(width / 52, 2.0, 7.0);
    for (const double step : kSteps)
        if (span / step <= most) return step;
    return 21600;
}

std::vector<double> ticksIn(double lower, double upper, double step) {
    std::vector<double> out;
    if (!(step > 0)) return out;
    const double slack = step * 1e-6;
    for (double k = std::ceil((lower - slack) / step); k * step <= upper + slack; ++k)
        out.push_back(k * step);
    return out;
}

QString clockText(double seconds, int decimals) {
    const double scale = std::pow(10, decimals);
    const double rounded = std::round(std::max(0.0, seconds) * scale) / scale;
    const int whole = int(rounded);
    const int hours = whole / 3600, minutes = whole / 60 % 60;
    const double rest = rounded - hours * 3600 - minutes * 60;
    const QString secs =
        QString::number(rest, 'f', decimals).rightJustified(decimals ? 3 + decimals : 2, '0');
    if (hours) return QString("%1:%2:%3").arg(hours).arg(minutes, 2, 10, QChar('0')).arg(secs);
    return QString("%1:%2").arg(minutes, 2, 10, QChar('0')).arg(secs);
}

}  // namespace colibri::ui
