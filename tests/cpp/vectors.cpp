// Runs the cases of tests/vectors, as tests/c/vector_lines.py writes them, from standard input. A case is a
// test.
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <tidegate.hpp>

#include "../c/tidegate_test.h"

using namespace tidegate;

namespace
{

/// One call: its name, and its `key=value` fields.
struct Line {
    explicit Line(const std::string &text) : all(text)
    {
        std::istringstream words(text);
        words >> op;
        for (std::string word; words >> word;) {
            const auto sign = word.find('=');
            fields[word.substr(0, sign)] = sign == std::string::npos ? "" : word.substr(sign + 1);
        }
    }

    bool has(const std::string &key) const { return fields.count(key) > 0; }
    const std::string &text(const std::string &key) const { return fields.at(key); }
    std::int64_t number(const std::string &key) const { return std::stoll(fields.at(key)); }
    tidegate::priority priority() const { return static_cast<tidegate::priority>(number("priority")); }
    tidegate::outcome outcome() const { return static_cast<tidegate::outcome>(number("outcome")); }

    std::string all;
    std::string op;
    std::map<std::string, std::string> fields;
};

std::string from_hexadecimal(const std::string &digits)
{
    std::string text;
    for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
        text += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    }
    return text;
}

thresholds thresholds_of(const Line &line)
{
    thresholds all;
    for (const priority each : priorities) {
        const auto key = "t" + std::to_string(static_cast<int>(each));
        if (!line.has(key)) {
            continue;
        }
        const auto &text = line.text(key);
        const auto value = std::stoll(text.substr(text.find(':') + 1));
        if (text[0] == '1') {
            all.share(each, static_cast<double>(value) / 1e6);
        } else {
            all.reserve(each, value);
        }
    }
    return all;
}

std::optional<rate> rate_of(const Line &line)
{
    const bool none = line.number("count") == 0 && line.number("per") == 0 && line.number("burst") == 0;
    const rate given(line.number("count"), static_cast<per>(line.number("per")), line.number("burst"));
    return none ? std::nullopt : std::optional(given);
}

/// A case: a gate, its permits, and what was not as expected.
class Case
{
public:
    void step(const Line &line)
    {
        if (line.op == "gate") {
            make(line);
        } else if (line.op == "clock") {
            tidegate_test_set_clock(std::stoull(line.text("ns")));
        } else if (line.op == "try_admit") {
            try_admit(line);
        } else if (line.op == "release") {
            release(line);
        } else if (line.op == "set_limit") {
            answered(line, gate_->try_set_limit(line.number("limit")));
        } else if (line.op == "set_thresholds") {
            answered(line, gate_->try_set_thresholds(thresholds_of(line)));
        } else if (line.op == "set_rate") {
            answered(line, gate_->try_set_rate(rate_of(line)));
        } else if (line.op == "set_enforce") {
            answered(line, gate_->try_set_enforce(line.number("enforce") != 0));
        } else if (line.op == "signal") {
            answered(line, gate_->try_push_signal(from_hexadecimal(line.text("name")), std::stod(line.text("value")),
                                                  std::chrono::milliseconds(line.number("good_for_ms"))));
        } else if (line.op == "close") {
            answered(line, gate_->try_close());
        } else if (line.op == "retry_after") {
            retry_after(line);
        } else if (line.op == "stats") {
            compare(line);
        } else if (line.op == "open") {
            open(line);
        } else if (line.op == "reload") {
            reload(line);
        } else if (line.op == "use") {
            use(line);
        } else if (line.op == "names") {
            names(line);
        } else if (line.op == "state") {
            state(line);
        } else if (line.op == "classify") {
            classify(line);
        } else if (line.op == "explain") {
            same(line, *gates_->try_explain(), from_hexadecimal(line.text("text")));
        } else {
            wrong(line, "no such call");
        }
    }

    const std::string &found() const { return found_; }

private:
    void wrong(const Line &line, const std::string &what)
    {
        found_ += "    " + what + ": " + line.all + "\n";
    }

    void answered(const Line &line, status got)
    {
        if (got.code() != line.number("want")) {
            wrong(line, "got " + std::to_string(got.code()));
        }
    }

    void make(const Line &line)
    {
        tidegate_test_set_clock(0);
        config from(from_hexadecimal(line.text("name")), line.number("limit"));
        from.set_enforce(line.number("enforce") != 0)
            .set_default_priority(static_cast<priority>(line.number("default")))
            .set_thresholds(thresholds_of(line));
        if (const auto rate = rate_of(line)) {
            from.set_rate(*rate);
        }
        auto made = gate::make(from);
        answered(line, made ? status() : made.error().status);
        if (made) {
            gate_ = *std::move(made);
        }
    }

    void try_admit(const Line &line)
    {
        auto permit = gate_->try_admit(line.priority(), line.number("weight"));
        answered(line, permit ? status() : permit.error().status());
        if (permit) {
            if (permit->over() != (line.number("over") != 0)) {
                wrong(line, "over is not as expected");
            }
            permits_.emplace(line.number("as"), *std::move(permit));
        }
    }

    void release(const Line &line)
    {
        permit &held = permits_.at(line.number("permit"));
        const status unless_released(held.released() ? TIDEGATE_ERR_STALE : TIDEGATE_ERR_ARGUMENT);
        answered(line, held.release(line.outcome()) ? status() : unless_released);
    }

    void retry_after(const Line &line)
    {
        const auto got = gate_->try_retry_after(line.priority(), line.number("weight"));
        answered(line, got ? status() : got.error());
        if (got) {
            const double wait = *got ? (*got)->count() : -1.0;
            const double wanted = std::stod(line.text("seconds"));
            if (!(wait == wanted || std::abs(wait - wanted) <= 1e-9)) {
                wrong(line, "got " + std::to_string(wait));
            }
        }
    }

    void compare(const Line &line)
    {
        const auto stats = gate_->try_stats();
        std::map<std::string, std::uint64_t> got{
            {".limit", stats->limit},
            {".in_flight", stats->in_flight},
            {".high_water", stats->high_water},
            {".generation", stats->generation},
            {".unmatched_exits", stats->unmatched_exits},
            {".collected", stats->collected},
            {".fallback_priority", stats->fallback_priority},
        };
        for (const priority each : priorities) {
            const auto level = std::to_string(static_cast<int>(each));
            got[".admitted." + level] = stats->admitted[each];
            got[".would_shed." + level] = stats->would_shed[each];
            for (const reason why : reasons) {
                got[".shed." + level + "." + std::to_string(static_cast<int>(why) - 1)] =
                    stats->shed[each][why];
            }
        }
        for (const outcome each : outcomes) {
            got[".released." + std::to_string(static_cast<int>(each))] = stats->released[each];
        }
        for (const auto &[key, wanted] : line.fields) {
            if (got.at(key) != std::stoull(wanted)) {
                wrong(line, key + " is " + std::to_string(got.at(key)));
            }
        }
    }

    // --- gates from a file ---

    void same(const Line &line, const std::string &got, const std::string &wanted)
    {
        if (got != wanted) {
            wrong(line, "got " + got);
        }
    }

    /// What a call said, line by line: all of it, or its beginning.
    void compare_said(const Line &line, const std::string &said)
    {
        if (!line.has("n")) {
            return;
        }
        std::istringstream lines(said);
        std::string got;
        std::int64_t count = 0;
        for (; std::getline(lines, got); ++count) {
            const auto at = std::to_string(count);
            if (line.has("l" + at)) {
                same(line, got, from_hexadecimal(line.text("l" + at)));
            } else if (line.has("p" + at)) {
                const auto wanted = from_hexadecimal(line.text("p" + at));
                same(line, got.substr(0, wanted.size()), wanted);
            }
        }
        if (count != line.number("n")) {
            wrong(line, "said " + said);
        }
    }

    void open(const Line &line)
    {
        tidegate_test_set_clock(0);
        auto opened = gates::open_text(from_hexadecimal(line.text("toml")), "vector.toml");
        answered(line, opened ? status() : opened.error().status);
        compare_said(line, opened ? "" : opened.error().message);
        if (opened) {
            gates_ = *std::move(opened);
            remember_all();
        }
    }

    void reload(const Line &line)
    {
        const auto reloaded = gates_->try_reload_text(from_hexadecimal(line.text("toml")));
        answered(line, reloaded ? status() : reloaded.error().status);
        compare_said(line, reloaded ? *reloaded : reloaded.error().message);
        remember_all();
    }

    /// To be there also when a reload has the file without them.
    void remember_all()
    {
        for (const gate &each : gates_->all()) {
            seen_.insert_or_assign(std::string(each.name()), each);
        }
    }

    void use(const Line &line) { gate_ = seen_.at(from_hexadecimal(line.text("gate"))); }

    void names(const Line &line)
    {
        std::string names;
        for (const gate &each : gates_->all()) {
            names += std::string(each.name()) + "\n";
        }
        compare_said(line, names);
    }

    void state(const Line &line)
    {
        const auto stats = gate_->try_stats();
        std::map<std::string, std::uint64_t> got{
            {".limit", stats->limit},
            {".default_priority", static_cast<std::uint64_t>(stats->default_priority)},
            {".enforce", stats->enforce},
            {".timing", stats->timing},
            {".closed", stats->closed},
        };
        for (const priority each : priorities) {
            got[".threshold." + std::to_string(static_cast<int>(each))] = stats->thresholds[each];
        }
        for (const auto &[key, wanted] : line.fields) {
            if (got.count(key) > 0 && got.at(key) != std::stoull(wanted)) {
                wrong(line, key + " is " + std::to_string(got.at(key)));
            }
        }
    }

    void classify(const Line &line)
    {
        std::vector<std::pair<std::string, std::string>> texts;
        for (std::int64_t at = 0; at < line.number("n"); ++at) {
            const auto &pair = line.text("a" + std::to_string(at));
            const auto colon = pair.find(':');
            texts.emplace_back(from_hexadecimal(pair.substr(0, colon)),
                               from_hexadecimal(pair.substr(colon + 1)));
        }
        std::vector<attribute> request;
        for (const auto &[name, value] : texts) {
            request.push_back({name.c_str(), value});
        }
        const auto decided = gates_->try_classify(request.data(), request.size());
        if (!decided || static_cast<std::int64_t>(*decided) != line.number("priority")) {
            wrong(line, "another priority");
        }
    }

    std::optional<gates> gates_;
    std::map<std::string, gate> seen_;
    std::optional<gate> gate_;
    std::map<std::int64_t, permit> permits_;
    std::string found_;
};

}  // namespace

int main()
{
    std::vector<std::pair<std::string, std::vector<Line>>> cases;
    for (std::string text; std::getline(std::cin, text);) {
        const Line line(text);
        if (line.op == "case") {
            cases.emplace_back(from_hexadecimal(text.substr(text.find(' ') + 1)), std::vector<Line>());
        } else {
            cases.back().second.push_back(line);
        }
    }
    int failed = 0;
    int skipped_steps = 0;
    int skipped_cases = 0;
    for (const auto &[name, lines] : cases) {
        Case running;
        bool bare = false;
        for (const Line &line : lines) {
            bare = bare || line.op == "enter" || line.op == "exit";
        }
        if (bare) {
            ++skipped_cases;
            continue;
        }
        for (const Line &line : lines) {
            if (line.op == "skip") {
                ++skipped_steps;
            } else {
                running.step(line);
            }
        }
        std::cout << running.found() << (running.found().empty() ? "ok       " : "FAILED   ")
                  << "vector: " << name << '\n';
        failed += running.found().empty() ? 0 : 1;
    }
    std::cout << "    " << cases.size() << " cases; left out: " << skipped_cases
              << " with bare entries, which C++ has none of, and " << skipped_steps
              << " steps that its types cannot express\n";
    return failed > 0 || cases.size() < 60 ? 1 : 0;
}
