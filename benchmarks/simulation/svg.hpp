// SPDX-License-Identifier: Apache-2.0
/// \file
/// Small charts as SVG, light or dark as the reader prefers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace simulation {

/// A chart: bars, if there are any, and lines over common axes.
struct Chart {
  struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;
  };
  std::string title, x_label, y_label;
  std::vector<std::pair<std::string, double>> bars{};  ///< label under the bar, height
  std::vector<Line> lines{};
  double x_least = 0, x_most = 1;  ///< of the axis; of no use to bars
  double y_least = 0, y_most = 1;
  bool logarithmic = false;    ///< the y axis; y_least > 0
  bool logarithmic_x = false;  ///< the x axis; x_least > 0
};

/// Writes charts side by side, `columns` in a row.
class Svg {
 public:
  explicit Svg(std::size_t columns) : columns_(columns) {}

  void add(Chart const& chart) {
    auto const column = static_cast<double>(charts_ % columns_), row = static_cast<double>(charts_ / columns_);
    ++charts_;
    left_ = column * width + 52, top_ = row * height + 28;
    text(left_ + inner / 2, top_ - 10, chart.title, "middle", 13, true);
    text(left_ + inner / 2, top_ + tall + 34, chart.x_label, "middle", 11);
    add("<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">", left_ - 38,
        top_ + tall / 2);
    body_ += chart.y_label + "</text>\n";
    axes(chart);
    auto const slot = chart.bars.empty() ? 0.0 : inner / static_cast<double>(chart.bars.size());
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
      auto const& [label, value] = chart.bars[i];
      auto const x = left_ + slot * static_cast<double>(i), y = height_of(chart, value);
      add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"f0\"/>\n", x + 0.1 * slot, y, 0.8 * slot,
          top_ + tall - y);
      if (!label.empty()) text(x + slot / 2, top_ + tall + 15, label, "middle", 10);
    }
    for (std::size_t i = 0; i < chart.lines.size(); ++i) {
      auto const colour = static_cast<int>(i % light.size());
      std::string path;
      for (auto const& [x, y] : chart.lines[i].points) {
        char point[64];
        std::snprintf(point, sizeof point, "%s%.1f %.1f", path.empty() ? "M" : " L",
                      left_ + inner * share(x, chart.x_least, chart.x_most, chart.logarithmic_x), height_of(chart, y));
        path += point;
        if (y > chart.y_most) break;  // the line leaves the chart
      }
      body_ += "<path d=\"" + path + "\" class=\"s" + std::to_string(colour) + "\"/>\n";
      auto const y = top_ + 12 + 14 * static_cast<double>(i);
      add("<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"3\" class=\"f%d\"/>\n", left_ + 8, y - 5, colour);
      text(left_ + 26, y, chart.lines[i].name, "start", 11);
    }
  }

  /// Throws std::runtime_error naming the file if it cannot be written.
  void write(std::string const& path) const {
    auto const columns = static_cast<double>(std::min(charts_, columns_));
    auto const rows = static_cast<double>((charts_ + columns_ - 1) / columns_);
    char head[128];
    std::snprintf(head, sizeof head,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\">\n",
                  columns * width, rows * height);
    std::ofstream file(path);
    file << head << "<style>\npath { fill: none; stroke-width: 2 }\n"
         << style("#ffffff", "#1f2328", "#d8dee4", light) << "@media (prefers-color-scheme: dark) {\n"
         << style("#0d1117", "#e6edf3", "#30363d", dark) << "}\n</style>\n"
         << "<rect width=\"100%\" height=\"100%\" class=\"ground\"/>\n"
         << body_ << "</svg>\n";
    if (!file.flush()) throw std::runtime_error("cannot write '" + path + "'");
  }

 private:
  static constexpr double width = 380, height = 250, inner = 310, tall = 170;
  using Colours = std::array<char const*, 6>;
  static constexpr Colours light{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#7f7f7f"};
  static constexpr Colours dark{"#58a6ff", "#ff7b72", "#56d364", "#bc8cff", "#ffa657", "#a5a5a5"};

  /// The style for readers who prefer light or dark.
  static std::string style(std::string const& ground, std::string const& ink, std::string const& grid,
                           Colours const& colours) {
    auto all = ".ground { fill: " + ground + " }\ntext { fill: " + ink + " }\n.frame { fill: none; stroke: " + ink +
               " }\n.grid { stroke: " + grid + " }\n";
    for (std::size_t i = 0; i < colours.size(); ++i) {
      auto const name = std::to_string(i), colour = std::string(colours[i]);
      all += ".f" + name + " { fill: " + colour + " }\n.s" + name + " { stroke: " + colour + " }\n";
    }
    return all;
  }

  template <class... Values>
  void add(char const* format, Values... values) {
    char line[256];
    std::snprintf(line, sizeof line, format, values...);
    body_ += line;
  }
  void text(double x, double y, std::string const& words, char const* anchor, int size, bool bold = false) {
    add("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s>", x, y, anchor, size,
        bold ? " font-weight=\"bold\"" : "");
    body_ += words + "</text>\n";
  }
  /// A value's position along its axis, from 0 to 1.
  static double share(double value, double least, double most, bool logarithmic) {
    return logarithmic ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
  }
  double height_of(Chart const& chart, double y) const {
    y = std::clamp(y, chart.y_least, chart.y_most);
    auto const part = share(y, chart.y_least, chart.y_most, chart.logarithmic);
    return top_ + tall * (1 - part);
  }
  void axes(Chart const& chart) {
    auto const mark = [&](double y) {
      add("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", left_, left_ + inner,
          height_of(chart, y), height_of(chart, y));
      text(left_ - 5, height_of(chart, y) + 4, number(y), "end", 10);
    };
    if (chart.logarithmic)
      for (double y = chart.y_least; y <= chart.y_most * 1.001; y *= 10) mark(y);
    else
      for (int i = 0; i <= 4; ++i) mark(chart.y_least + (chart.y_most - chart.y_least) * i / 4);
    if (chart.bars.empty() && chart.logarithmic_x)
      for (double x = chart.x_least; x <= chart.x_most * 1.001; x *= 10)
        text(left_ + inner * share(x, chart.x_least, chart.x_most, true), top_ + tall + 15, number(x), "middle", 10);
    else if (chart.bars.empty())
      for (int i = 0; i <= 4; ++i)
        text(left_ + inner * i / 4, top_ + tall + 15, number(chart.x_least + (chart.x_most - chart.x_least) * i / 4),
             "middle", 10);
    add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"frame\"/>\n", left_, top_, inner, tall);
  }
  static std::string number(double x) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.5g", x);
    return digits;
  }

  std::size_t columns_, charts_ = 0;
  double left_ = 0, top_ = 0;
  std::string body_;
};

}  // namespace simulation
