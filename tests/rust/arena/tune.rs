//! Temporary.
use crate::{parallel, play, scenario, score};
use score::Start;
use tidegate::controller::Kind;

pub(crate) fn run() -> bool {
    if std::env::var("TUNE").is_ok() {
        tune();
        return true;
    }
    if std::env::var("DEBUG").is_ok() {
        let a: Vec<String> = std::env::args().skip(1).collect();
        debug(&a[0], a[1].parse().unwrap(), a[2].parse().unwrap());
        return true;
    }
    false
}
fn debug(name: &str, start: u32, seed: u64) {
    let place = scenario::one(name);
    let p = play::play(&place, play::Player { kind: Kind::Goodput, start }, seed);
    let step = place.scenario.interval.as_secs_f64();
    let mut last = 0;
    for (i, l) in p.limits.iter().enumerate() {
        if *l != last {
            print!("{:.0}:{l} ", (i + 1) as f64 * step);
            last = *l;
        }
    }
    println!("\nslices {:?}", p.slices);
}

fn tune() {
    use play::{Player, play};
    let best = [
        ("steady-2x", 43),
        ("steady-5x", 41),
        ("mild-1.25x", 44),
        ("bimodal-2x", 46),
        ("capacity-quarter", 38),
        ("kappa-16x", 33),
        ("idle-burst", 41),
        ("light-half", 43),
        ("slow-dependency", 52),
        ("timeout-outage", 43),
        ("retry-storm", 43),
        ("tiny-service", 7),
        ("two-priorities", 54),
        ("trace-2x", 44),
        ("slow-rate-prior", 41),
        ("cached", 44),
        ("exponential", 38),
        ("no-objective", 43),
        ("cliff", 30),
        ("plateau", 41),
        ("three", 3),
        ("one", 1),
    ];
    let only = std::env::args().nth(1).unwrap_or_default();
    let seeds: Vec<u64> = std::env::args().nth(2).map_or((101..=112).collect(), |text| {
        let (a, b) = text.split_once('-').unwrap();
        (a.parse().unwrap()..=b.parse().unwrap()).collect()
    });
    let peers = std::env::args().nth(3).is_some();
    let mut sum = [0.0; 3];
    for place in
        scenario::all().iter().filter(|p| p.name.contains(&only) && (only != "" || p.name != "tiny-service"))
    {
        let limit = best.iter().find(|b| b.0 == place.name).unwrap().1;
        let fixed = parallel::map(&seeds, |&s| play(place, Player { kind: Kind::Fixed, start: limit }, s));
        let reference = score::Reference { limit, played: fixed };
        let jobs: Vec<_> = (if peers { vec![Kind::Goodput, Kind::Aimd] } else { vec![Kind::Goodput] })
            .into_iter()
            .flat_map(|k| Start::ALL.map(|s| (k, s)))
            .flat_map(|(k, s)| (0..seeds.len()).map(move |i| (k, s, i)))
            .collect();
        let out = parallel::map(&jobs, |&(k, s, i)| {
            let p = play(place, Player { kind: k, start: s.of(limit) }, seeds[i]);
            (p.good() / reference.played[i].good(), p.top_success)
        });
        print!("{:17}", place.name);
        for (n, chunk) in out.chunks(seeds.len()).enumerate() {
            let m = score::mean(chunk.iter().map(|c| c.0));
            let w = chunk.iter().map(|c| c.0).fold(9.0, f64::min);
            if n < 3 {
                sum[n] += m;
            }
            print!(" {m:.4} ({w:.3})");
            if place.name == "two-priorities" {
                print!("[{:.4}]", score::mean(chunk.iter().map(|c| c.1)));
            }
        }
        println!();
    }
    println!("sum {sum:.4?}");
}
