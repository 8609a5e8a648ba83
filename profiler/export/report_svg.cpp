// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "profiler/export/report.h"

namespace colibri {
namespace {

// Lengths in the units of the picture, which are pixels at its usual size.
constexpr double kWidth = 500, kLeft = 48, kRight = 10, kTop = 6, kPlotHeight = 110, kBottom = 20;
constexpr double kInner = kWidth - kLeft - kRight;
constexpr double kDigitWidth = 6.7;
constexpr int kGridLines = 4, kTimeTicks = 6;
// Values come at most 0.25 s apart: a longer gap interrupts the line.
constexpr double kJoinedSeconds = 0.6;

// The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `least`.
double roundStep(double least) {
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
        if (factor * power >= least * (1 - 1e-9)) return factor * power;
    }
    return 10 * power;
}

std::string svgNumber(double value) {
    std::string text = formatFixed(value, 1);
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// A figure on an axis with ticks `step` apart.
std::string tickText(double value, double step) {
    const int decimals = std::clamp(int(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
    const bool quarter = std::fabs(step * std::pow(10.0, decimals) - 2.5) < 1e-6 && decimals > 0;
    const bool whole = std::fabs(std::remainder(step * std::pow(10.0, decimals), 1.0)) < 1e-6;
    return formatFixed(value, decimals + (quarter || !whole ? 1 : 0));
}

struct Scale {
    double max, step;
};

Scale scaleOf(const ReportPlot& plot) {
    double high = 0;
    for (const ReportPlot::Line& line : plot.lines) {
        if (line.count > 0) high = std::max(high, line.high);
    }
    if (plot.fixedMax > 0) high = plot.fixedMax;
    if (!(high > 0)) high = 1;
    const double step = roundStep(high / kGridLines);
    return {std::ceil(high / step - 1e-9) * step, step};
}

double yOf(double value, const Scale& scale) {
    return kTop + kPlotHeight * (1 - std::clamp(value / scale.max, 0.0, 1.0));
}

std::string pathOf(const ReportPlot::Line& line, const Scale& scale, size_t joinedBins) {
    std::string path;
    size_t empty = joinedBins + 1;
    for (size_t i = 0; i < line.bins.size(); ++i) {
        const ReportPlot::Bin& bin = line.bins[i];
        if (bin.count == 0) {
            ++empty;
            continue;
        }
        const std::string x =
            svgNumber(kLeft + kInner * (double(i) + 0.5) / double(line.bins.size()));
        path += (empty > joinedBins ? "M" : "L") + x + " " + svgNumber(yOf(bin.high, scale));
        if (bin.low < bin.high) path += "L" + x + " " + svgNumber(yOf(bin.low, scale));
        if (empty > joinedBins && bin.low == bin.high) path += "l0.1 0";  // a single point shows
        empty = 0;
    }
    return path;
}

std::string lineElement(const char* kind, double x1, double y1, double x2, double y2) {
    return std::string("<line class=\"") + kind + "\" x1=\"" + svgNumber(x1) + "\" y1=\"" +
           svgNumber(y1) + "\" x2=\"" + svgNumber(x2) + "\" y2=\"" + svgNumber(y2) + "\"/>";
}

std::string textElement(double x, double y, const char* anchor, const std::string& text) {
    return "<text x=\"" + svgNumber(x) + "\" y=\"" + svgNumber(y) + "\" text-anchor=\"" + anchor +
           "\">" + text + "</text>";
}

std::string axes(const Scale& scale, const TimeRange& range) {
    std::string out = "<rect class=\"ground\" x=\"" + svgNumber(kLeft) + "\" y=\"" +
                      svgNumber(kTop) + "\" width=\"" + svgNumber(kInner) + "\" height=\"" +
                      svgNumber(kPlotHeight) + "\"/>";
    for (double value = 0; value <= scale.max * (1 + 1e-9); value += scale.step) {
        const double y = yOf(value, scale);
        out += lineElement(value == 0 ? "base" : "grid", kLeft, y, kLeft + kInner, y);
        out += textElement(kLeft - 6, y + 4, "end", tickText(value, scale.step));
    }
    const double width = range.to - range.from;
    const double step = roundStep(width / kTimeTicks);
    for (double t = std::ceil(range.from / step - 1e-9) * step; t <= range.to + step * 1e-6;
         t += step) {
        const double x = kLeft + kInner * (t - range.from) / width;
        if (t > range.from) out += lineElement("grid", x, kTop, x, kTop + kPlotHeight);
        // The last figure stays inside the picture.
        const std::string text = tickText(t, step);
        const double half = kDigitWidth / 2 * double(text.size());
        out += textElement(std::min(x, kWidth - half), kTop + kPlotHeight + 15, "middle", text);
    }
    return out;
}

std::string rangeText(const ReportPlot::Line& line) {
    if (line.count == 0) return "n/a";
    const std::string low = formatSig(line.low), high = formatSig(line.high);
    return low == high ? low : low + ".." + high;
}

}  // namespace

std::string plotSvg(const ReportPlot& plot, const TimeRange& range,
                    const std::vector<ReportMarker>& changes) {
    std::string out = "<div class=\"plot\"><h3>" + htmlText(plot.title) + " <span>" +
                      htmlText(plot.unit) + "</span></h3>\n<div class=\"definition\">" +
                      htmlText(plot.definition) + "</div>\n";
    const bool known = std::any_of(plot.lines.begin(), plot.lines.end(),
                                   [](const ReportPlot::Line& line) { return line.count > 0; });
    if (!known) return out + "<div class=\"missing\">n/a: no values in this range</div></div>\n";
    out += "<div class=\"legend\">";
    for (const ReportPlot::Line& line : plot.lines) {
        out += "<span><i style=\"background:var(--s" + std::to_string(line.colour) + ")\"></i>" +
               htmlText(line.name) + " " + rangeText(line) + "</span>";
    }
    const Scale scale = scaleOf(plot);
    out += "</div>\n<svg viewBox=\"0 0 " + svgNumber(kWidth) + " " +
           svgNumber(kTop + kPlotHeight + kBottom) + "\" role=\"img\" aria-label=\"" +
           htmlText(plot.title) + "\">" + axes(scale, range);
    for (const ReportMarker& change : changes) {
        const double x = kLeft + kInner * (change.t - range.from) / (range.to - range.from);
        out += "<g><title>" + htmlText(change.label) + "</title>" +
               lineElement("change", x, kTop, x, kTop + kPlotHeight) + "</g>";
    }
    const double binSeconds = (range.to - range.from) / double(ReportPlot::kPlotBins);
    const size_t joined = std::max<size_t>(2, size_t(kJoinedSeconds / binSeconds));
    for (const ReportPlot::Line& line : plot.lines) {
        if (line.count == 0) continue;
        out += "<path class=\"line\" style=\"stroke:var(--s" + std::to_string(line.colour) +
               ")\" d=\"" + pathOf(line, scale, joined) + "\"/>";
    }
    return out + "</svg></div>\n";
}

}  // namespace colibri
