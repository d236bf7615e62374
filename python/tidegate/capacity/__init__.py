"""The capacity test: what limit? Asked of a real target, step by step.

- `target` is what is tested: a URL (`url`), SQL on a database (`sql`) or a Python function (`function`). What
  would run inside this process runs in one of its own instead (`apart`, `worker`), so that it cannot disturb
  the schedule of the load;
- `generator` sends: by a schedule that waits for nobody (an open loop), or as much as a gate lets in;
- `conductor` says what is sent next, and stops before a target collapses; `journal` writes down what was
  measured, so that an interrupted run goes on where it was;
- `analysis` turns measurements into a limit, in the Rust core;
- `findings` is all that a run found; `verdict`, `html`, `show`, `baseline` and `png` tell people and
programs.

Nothing here is imported by `import tidegate`.
"""
