// The workload's table, by Tidegate for C++, from lines on standard input: see cpp.sh.
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include <tidegate.hpp>

#include "../../c/tidegate_test.h"

using namespace tidegate;
using Counts = std::map<std::string, std::uint64_t>;

namespace
{

std::string json(std::uint64_t number)
{
    return std::to_string(number);
}

template <class Value>
std::string json(const std::map<std::string, Value> &of)
{
    std::string text;
    for (const auto &[key, value] : of) {
        text += (text.empty() ? "" : ", ") + ("\"" + key + "\": ") + json(value);
    }
    return "{" + text + "}";
}

/// One load, on gates of its own.
class Row
{
public:
    explicit Row(std::string load) : load_(std::move(load)) { tidegate_test_set_clock(0); }

    void step(const std::string &line)
    {
        std::istringstream words(line);
        std::string op, path, outcome_name;
        std::uint64_t at_ms = 0;
        int number = 0, weight = 0;
        words >> op;
        if (op == "file") {
            file_ += (line.size() > 5 ? line.substr(5) : "") + "\n";
        } else if (op == "gate") {
            gates_ = gates::open_text(file_, "overload.toml").value();
            gate_ = gates_->find(line.substr(5)).value();
        } else if (op == "close") {
            words >> at_ms;
            tidegate_test_set_clock(at_ms * 1000000);
            gate_->close();
        } else if (op == "arrive") {
            words >> at_ms >> number >> path >> weight;
            tidegate_test_set_clock(at_ms * 1000000);
            arrive(number, path, weight);
        } else if (op == "leave") {
            words >> at_ms >> number >> outcome_name;
            tidegate_test_set_clock(at_ms * 1000000);
            leave(number, outcome_name);
        }
    }

    std::string text() const
    {
        const auto stats = gate_->stats();
        Counts admitted, released;
        std::map<std::string, Counts> shed;
        for (const priority each : priorities) {
            admitted[std::string(to_string(each))] = stats.admitted[each];
            for (const reason why : reasons) {
                shed[std::string(to_string(each))][std::string(to_string(why))] = stats.shed[each][why];
            }
        }
        for (const outcome each : outcomes) {
            released[std::string(to_string(each))] = stats.released[each];
        }
        return "{\"load\": " + load_ + ", \"offered\": " + json(offered_) + ", " +
               part(admitted_, shed_, released_) + ", \"stats\": {" + part(admitted, shed, released) + "}}";
    }

private:
    std::string part(const Counts &admitted, const std::map<std::string, Counts> &shed,
                     const Counts &released) const
    {
        const auto stats = gate_->stats();
        return "\"admitted\": " + json(admitted) + ", \"shed\": " + json(shed) +
               ", \"released\": " + json(released) + ", \"high_water\": " + json(stats.high_water) +
               ", \"in_flight\": " + json(stats.in_flight);
    }

    void arrive(int number, const std::string &path, int weight)
    {
        const priority level = gates_->classify({{"path", path}});
        const std::string name(to_string(level));
        ++offered_[name];
        auto permit = gate_->try_admit(level, weight);
        if (permit) {
            ++admitted_[name];
            held_.emplace(number, *std::move(permit));
        } else {
            ++shed_[name][std::string(to_string(permit.error().reason().value()))];
        }
    }

    void leave(int number, const std::string &name)
    {
        const auto found = held_.find(number);
        if (found == held_.end()) {
            return;
        }
        for (const outcome each : outcomes) {
            if (to_string(each) == name && found->second.release(each)) {
                ++released_[name];
            }
        }
        held_.erase(found);
    }

    std::string load_, file_;
    std::optional<gates> gates_;
    std::optional<gate> gate_;
    std::map<int, permit> held_;
    Counts offered_, admitted_, released_;
    std::map<std::string, Counts> shed_;
};

}  // namespace

int main()
{
    std::string text;
    std::optional<Row> row;
    for (std::string line; std::getline(std::cin, line);) {
        if (line.rfind("load ", 0) == 0) {
            text += row ? row->text() + ", " : "";
            row.emplace(line.substr(5));
        } else {
            row->step(line);
        }
    }
    std::cout << "{\"language\": \"cpp\", \"loads\": [" << text << row->text() << "]}\n";
}
