"""Reports as one HTML file that needs no network: a verdict, charts and the tables they were drawn from.

- `page` is the whole file, `chart` and `table` are what stands in it;
- `origin` says where the figures come from: command, versions, machine;
- `words` turns numbers into text, `markup` text into HTML: both pure;
- `assets/` holds what the file carries with it: styles, the script that draws, uPlot and its licence.

Whoever has a report maps it to a `page.Page` (see `tidegate.demo.html`) and writes down `page.render(...)`.
Nothing here is imported by `import tidegate`.
"""
