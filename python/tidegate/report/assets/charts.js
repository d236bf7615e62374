/* Draws the charts that are described in the page's data. */
(() => {
    "use strict";

    const HEIGHT = 220;
    const PRINTED = { width: 320, height: 170 }; // two columns on paper
    const root = document.documentElement;
    const data = (id) => document.getElementById(id).textContent;
    const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
    const plain = (value) => String(Number(value.toPrecision(6)));

    function polygon(context, corners, x, y, radius) {
        context.beginPath();
        for (const [dx, dy] of corners) context.lineTo(x + dx * radius, y + dy * radius);
        context.closePath();
        context.fill();
    }

    function drawShapes(plot, chart) {
        const context = plot.ctx;
        chart.lines.forEach((line) => {
            // Where points are too many to be told apart, the line says it all.
            if (line.draw === "line" || (line.draw === "both" && chart.x.length > 40)) return;
            context.fillStyle = colour(`ink-${line.ink}`);
            line.values.forEach((value, at) => {
                if (value === null) return;
                const x = plot.valToPos(chart.x[at], "x", true);
                polygon(context, line.shape, x, plot.valToPos(value, "y", true), 5 * uPlot.pxRatio);
            });
        });
    }

    function drawMarks(plot, chart) {
        const context = plot.ctx;
        const { left, width } = plot.bbox;
        const unit = uPlot.pxRatio;
        context.save();
        context.strokeStyle = context.fillStyle = colour("quiet");
        context.lineWidth = unit;
        context.setLineDash([2 * unit, 3 * unit]);
        context.font = `${12 * unit}px system-ui, sans-serif`;
        context.textAlign = "left";
        context.textBaseline = "bottom";
        for (const mark of chart.marks) {
            const y = plot.valToPos(mark.at, "y", true);
            context.beginPath();
            context.moveTo(left, y);
            context.lineTo(left + width, y);
            context.stroke();
            context.fillText(mark.name, left + 4 * unit, y - 2 * unit);
        }
        context.restore();
    }

    const xText = (chart, value) => plain(value) + chart.xUnit;

    function powersOfTwo(low, high) {
        const powers = [];
        for (let power = 2 ** Math.ceil(Math.log2(low)); power <= high; power *= 2) powers.push(power);
        return powers;
    }

    // A few values of x are worth an exact tick each. Where texts would overlap, the later one is left out.
    function xTicks(chart) {
        const few = chart.x.length <= 12;
        if (!few && !chart.log2) return {};
        return {
            splits: () => (few ? chart.x : powersOfTwo(...xRange(chart))),
            filter: (plot, splits) => {
                let end = -Infinity;
                return splits.map((value) => {
                    const half = xText(chart, value).length * 3.5;
                    const at = plot.valToPos(value, "x");
                    if (at - half < end + 6) return null;
                    end = at + half;
                    return value;
                });
            },
        };
    }

    function xRange(chart) {
        const [low, high] = [chart.x[0], chart.x[chart.x.length - 1]];
        if (chart.log2) return [low / 1.2, high * 1.2];
        const air = (high - low) * 0.06 || 1;
        return [low - air, high + air];
    }

    function draw(box, chart) {
        const figure = box.closest("figure");
        const said = figure.querySelectorAll(".legend b");
        const where = figure.querySelector("figcaption span");
        const unit = chart.yUnit && ` ${chart.yUnit}`;
        const axis = { stroke: () => colour("quiet"), font: "12px system-ui, sans-serif" };
        const rule = { stroke: () => colour("rule"), width: 1 };

        function tell(plot) {
            const at = plot.cursor.idx ?? chart.x.length - 1;
            where.textContent = `at ${xText(chart, chart.x[at])}`;
            chart.lines.forEach((line, index) => (said[index].textContent = line.said[at]));
        }

        const options = {
            width: box.clientWidth,
            height: HEIGHT,
            legend: { show: false },
            cursor: {
                y: false,
                drag: { x: false, y: false },
                points: { show: false },
                sync: { key: chart.xLabel },
            },
            scales: {
                x: { time: false, distr: chart.log2 ? 3 : 1, log: 2, range: () => xRange(chart) },
                y: { range: () => [0, chart.top] },
            },
            axes: [
                {
                    ...axis,
                    ...xTicks(chart),
                    grid: { show: false },
                    ticks: rule,
                    label: chart.xLabel,
                    labelFont: axis.font,
                    labelSize: 18,
                    size: 30,
                    values: (plot, splits) => splits.map((at) => (at === null ? "" : xText(chart, at))),
                },
                {
                    ...axis,
                    grid: rule,
                    ticks: { show: false },
                    size: 62,
                    values: (plot, splits) => splits.map((value) => plain(value) + unit),
                },
            ],
            series: [
                {},
                ...chart.lines.map((line) => ({
                    stroke: () => colour(`ink-${line.ink}`),
                    width: line.draw === "points" ? 0 : 2,
                    dash: line.dashed ? [5, 4] : undefined,
                    points: { show: false },
                })),
            ],
            hooks: {
                draw: [(plot) => drawMarks(plot, chart), (plot) => drawShapes(plot, chart)],
                setCursor: [tell],
            },
        };
        return new uPlot(options, [chart.x, ...chart.lines.map((line) => line.values)], box);
    }

    function offerFigures() {
        const paragraph = document.querySelector(".save");
        const file = new Blob([data("figures")], { type: "application/json" });
        paragraph.firstElementChild.href = URL.createObjectURL(file);
        paragraph.hidden = false;
    }

    root.classList.add("drawn"); // a box that is not shown has no width
    const charts = JSON.parse(data("charts"));
    const boxes = [...document.querySelectorAll(".plot")];
    const plots = boxes.map((box) => draw(box, charts[box.dataset.chart]));

    const sizes = new ResizeObserver((entries) => {
        if (root.classList.contains("print")) return;
        for (const entry of entries) {
            const width = Math.floor(entry.contentRect.width);
            const plot = plots[boxes.indexOf(entry.target)];
            if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
        }
    });
    boxes.forEach((box) => sizes.observe(box));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        plots.forEach((plot) => plot.redraw());
    });
    // Paper is white, and as wide as it is.
    addEventListener("beforeprint", () => {
        root.classList.add("print");
        plots.forEach((plot) => plot.setSize(PRINTED));
    });
    addEventListener("afterprint", () => {
        root.classList.remove("print");
        plots.forEach((plot, index) => plot.setSize({ width: boxes[index].clientWidth, height: HEIGHT }));
    });
    offerFigures();
})();
