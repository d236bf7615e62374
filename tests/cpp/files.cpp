// Gates from a file.
#include "check.hpp"

#include <thread>
#include <vector>

using namespace tidegate;

namespace
{

const std::string two = "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1\n";
const std::string one = "[gates.other]\nlimit = 1\n";

gates from(const std::string &text)
{
    return gates::open_text(text, "f.toml").value();
}

}  // namespace

TEST(each_name_has_one_gate)
{
    const gates file = from(two);
    const gate db = file["db"];
    CHECK_EQ(db.name(), "db");
    CHECK_EQ(db.limit(), 5);
    const auto held = db.admit();
    CHECK_EQ(file["db"].in_flight(), 1);
    CHECK_EQ(file.all().size(), 2U);
    CHECK_EQ(file.all()[1].name(), "other");
    CHECK(!file.find("none"));
    CHECK_EQ(check::thrown<config_error>([&] { (void)file["none"]; }), "the file has no gate \"none\"");
}

TEST(a_gate_keeps_its_file)
{
    std::optional<gates> file = from(two);
    const gate db = (*file)["db"];
    file.reset();
    CHECK(db.try_admit().has_value());
    CHECK(!db.stats().closed);
}

TEST(all_that_is_wrong_with_a_file_is_thrown)
{
    const auto said = check::thrown<config_error>([] { (void)from("[gates.db]\nlimit = -1\nspeed = 3\n"); });
    CHECK(said.find(
              "f.toml, line 2: gates.db.limit: limit must be a whole number from 0 to 2147483647, got -1\n"
              "f.toml, line 3: unknown key \"speed\"; gates.db takes ") == 0);
    CHECK_EQ(check::thrown<config_error>([] { gates file("/"); }), "/: is a directory, not a file");
    const auto refused = gates::open("/no/such/file");
    CHECK(!refused && refused.error().status.code() == TIDEGATE_ERR_CONFIG);
    CHECK(!gates::open_text({}));
}

TEST(a_reload_says_what_it_changed)
{
    const gates file = from(two);
    const gate db = file["db"];
    const auto held = db.admit();
    CHECK_EQ(file.reload_text(one), "gate db: removed, and closed, with 1 in flight");
    CHECK(db.stats().closed && !file.find("db"));
    CHECK_EQ(file.reload_text("[gates.db]\nlimit = 7\n" + one),
             "gate db: added again, and open, with 1 in flight\ngate db: limit 5 -> 7");
    CHECK_EQ(db.limit(), 7);
    CHECK_EQ(file["db"].in_flight(), 1);
    CHECK_EQ(file.reload_text("[gates.db]\nlimit = 7\n" + one), "");
    const auto refused = file.try_reload_text("[gates.db]\nlimit = 'x'\n");
    CHECK(!refused && refused.error().message.find("f.toml, line 2: gates.db.limit: ") == 0);
    CHECK_EQ(check::thrown<config_error>([&] { file.reload(); }),
             "f.toml: was given as text: there is no file to read again");
    CHECK_EQ(db.limit(), 7);
}

TEST(a_request_is_classified)
{
    const gates file =
        from("[classifier]\n[[classifier.rules]]\nmatch = { path = '/r*' }\npriority = 'sheddable'\n" + two);
    const std::string path = "/reports";
    CHECK(file.classify({{"method", "GET"}, {"path", path}}) == priority::sheddable);
    CHECK(file.classify({}) == priority::gate_default);
    CHECK_EQ(file.explain({{"path", path}}), "sheddable, by rule 1: path = \"/r*\"");
    const std::vector<attribute> request{{"path", "/other"}};
    CHECK(*file.try_classify(request.data(), request.size()) == priority::gate_default);
    CHECK(!file.try_classify({{nullptr, ""}}));
    CHECK(file["db"].try_admit(file.classify({{"path", path}})).has_value());
}

TEST(a_file_is_explained)
{
    const auto said = from(two).explain();
    CHECK(said.find("gate db: at most 5 at once; ") == 0);
    CHECK(said.find("gate other: at most 1 at once\n") != std::string::npos);
}

TEST(a_handle_that_was_moved_away_has_nothing)
{
    gates file = from(two);
    const gates moved = std::move(file);
    CHECK(!file.find("db") && file.all().empty());  // NOLINT: on purpose
    CHECK(file.try_reload().error().status.code() == TIDEGATE_ERR_NULL);
    CHECK(file.try_classify({}).error().code() == TIDEGATE_ERR_NULL);
    CHECK_EQ(moved.all().size(), 2U);
}

TEST(reloads_under_load_lose_nothing)
{
    const gates file = from(two);
    const gate db = file["db"];
    std::vector<std::thread> threads;
    for (int each = 0; each < 2; ++each) {
        threads.emplace_back([&] {
            for (int i = 0; i < check::scaled(300); ++i) {
                (void)file.try_reload_text(i % 3 == 0 ? one : i % 3 == 1 ? "[gates.db]\nlimit = 2\n" : two);
            }
        });
        threads.emplace_back([&] {
            for (int i = 0; i < check::scaled(20000); ++i) {
                (void)db.try_admit();
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    file.reload_text(two);
    check::at_rest(db);
    CHECK(db.stats().high_water <= 5);
    CHECK(db.try_admit().has_value());
}
