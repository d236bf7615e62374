"""`tidegate demo`: a chatbot backend driven into overload, with and without a gate.

How the pieces stand to each other, from the bottom up:

- `database` is the seam, `sqlite` and `postgres` stand behind it, `corpus` is what is written into them;
- `home` is where a database lives for one run, for example on a `postgres_server` of our own;
- `chatbot` is the application: one request is one history read and one context search;
- `doors` holds the arms: nothing, a semaphore, a Tidegate gate;
- `backend` (a process of its own) serves requests through a door to a pool of worker threads;
- `auto` plays the door that finds its limit, of which `history` tells;
- `foreign` speaks to a backend in another language in its place;
- `meter` (another) measures what the database can do when nobody queues;
- `arrivals` says when users come, `users` plays them and keeps their stopwatches;
- `capacity`, `report` and `verdict` turn measurements into numbers, rows and a sentence: all pure;
- `runner` conducts; `show` draws.

Nothing here is imported by `import tidegate`.
"""
