//! Controllers against the best fixed limit, on a simulated database that gets slower the more is inside.

mod database;
mod play;
mod scenario;
mod table;
#[path = "../common/mod.rs"]
mod common;

#[test]
#[ignore = "minutes long: prints the table"]
fn arena() {
    table::print();
}
