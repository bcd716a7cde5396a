"use strict";
// Draws the figures from the numbers in the page. `state` holds the user's choices; `drawAll` draws them.
const MARKS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"];
const SHAPES = ["M10 3a7 7 0 1 0 .1 0z", "M4 4h12v12H4z", "M10 3l7.5 13h-15z", "M10 2l8 8-8 8-8-8z", "M10 17L2.5 4h15z", "M8 3h4v5h5v4h-5v5H8v-5H3V8h5z", "M5 2l5 5 5-5 3 3-5 5 5 5-3 3-5-5-5 5-3-3 5-5-5-5z", "M10 2l2.4 5.4 5.6.5-4.3 3.8L15 18l-5-3.1L5 18l1.3-6.3L2 7.9l5.6-.5z"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const OUTCOMES = ["fresh", "reused", "dropped", "lost"], OUTCOME_COLOURS = ["#0072B2", "#009E73", "#E69F00", "#D55E00"];
const SHADES = { fresh: ["#0072B2", "#56B4E9", "#7A5195", "#004166"], reused: ["#009E73", "#66C7A8", "#00614a", "#9ad9c5"], dropped: ["#E69F00", "#f0c566", "#996900", "#b8860b"], lost: ["#D55E00", "#e68e4d", "#8f3f00", "#CC79A7"] };
const KEYS = ["boundary", "direction", "filter", "theme", "reference"];
const find = (selector, inside = document) => inside.querySelector(selector);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const state = { boundary: "", direction: "both", filter: "", theme: "", reference: "", highlight: null, choices: {} };
let data = null, COLOURS = [];

async function unpacked(id) {
  const bytes = Uint8Array.from(atob(find("#" + id).textContent.trim()), sign => sign.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

const name = at => data.variants[at].name;
const few = () => data.variants.filter((_, at) => isShown(at)).length <= 12; // a longer legend takes the room of the figure
const isShown = at => name(at).toLowerCase().includes(state.filter.toLowerCase());
const isDim = at => state.highlight !== null && state.highlight !== at;
// Palette first, then darker and lighter shades of it: no two variants share a colour, and no two of one hue a mark.
const colour = at => shaded(COLOURS[at % COLOURS.length], Math.floor(at / COLOURS.length));
const mark = at => (at + Math.floor(at / MARKS.length)) % MARKS.length;
function shaded(hex, times) {
  const towards = times % 2 ? 0 : 255, share = times ? Math.min(0.75, 0.2 + 0.15 * times) : 0;
  return "#" + [1, 3, 5].map(at => Math.round(parseInt(hex.slice(at, at + 2), 16) * (1 - share) + towards * share).toString(16).padStart(2, "0")).join("");
}
// Names of the legend, shortened in the middle; a number tells apart those that look the same.
function label(at) {
  const cut = text => text.length <= 40 ? text : text.slice(0, 24) + "…" + text.slice(-15), mine = cut(name(at));
  const twins = data.variants.slice(0, at).filter(one => cut(one.name) === mine).length;
  return bold(twins ? `${mine} (${twins + 1})` : mine);
}
// The range of an axis that fits the points; bars and bands may be cut, and proportions stay within their limits.
function fitted(values, limits) {
  const known = values.filter(one => one !== null && Number.isFinite(one));
  if (!known.length) return {};
  const low = Math.min(...known), high = Math.max(...known), room = 0.08 * (high - low) || Math.max(0.02 * Math.abs(high), 1e-3);
  const within = (end, at) => limits ? (at ? Math.min(end, limits[1] + 0.01 * (high - low)) : Math.max(end, limits[0])) : end;
  return { range: [within(low - room, 0), within(high + room, 1)] };
}
const look = at => ({ opacity: isDim(at) ? 0.12 : 1 });
const ink = property => getComputedStyle(document.documentElement).getPropertyValue(property).trim();
const bold = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
const folded = (text, width) => text.length <= width ? bold(text) : bold(text.slice(0, width - 1)) + "…";
const pair = known => [state.direction, "both"].map(way => `${state.boundary}/${way}`).find(key => known(key)) ;
const bytesTitle = key => { const [boundary, way] = key.split("/"); return `MB ${way === "both" ? "up and down" : way} (${boundary})`; };
const scale = values => Math.max(...values) > 8 * Math.min(...values.filter(one => one > 0)) ? { type: "log", dtick: "D2", minorloglabels: "complete" } : {};
const hoverHead = at => `<b>${folded(name(at), 60)}</b><br>${folded(data.variants[at].settings || "", 90)}<br>`;

function hovered(at, run) { return hoverHead(at) + (run === undefined ? "mean over seeds" : `seed ${data.runs[run].seed}`) + "<br>%{x:.5~g}, %{y:.5~g}<extra></extra>"; }

const draw = {
  frontier(figure, choices) {
    const key = pair(one => `${choices.which}/${one}` in figure.points), found = figure.points[`${choices.which}/${key}`];
    const means = found.means.filter(one => isShown(one[0])), traces = [];
    const spans = [1, 3].map(at => Math.max(...means.map(one => one[at])) - Math.min(...means.map(one => one[at])) || 1);
    const near = (one, other) => [1, 3].every((at, way) => Math.abs(one[at] - other[at]) < 0.02 * spans[way]);
    const front = found.front.filter(isShown).map(at => found.means.find(one => one[0] === at));
    traces.push({ x: front.map(one => one[1]), y: front.map(one => one[3]), mode: "lines", line: { shape: "hv", dash: "dot", width: 1.5, color: ink("--quiet") }, hoverinfo: "skip", name: "Pareto front" });
    for (const [place, [at, x, xs, y, ys]] of means.entries()) {
      const below = means.slice(0, place).filter(one => near(one, means[place])).length; // marks that this one would cover
      const seeds = found.seeds.filter(one => data.runs[one[0]].variant === at);
      traces.push({ x: seeds.map(one => one[1]), y: seeds.map(one => one[2]), mode: "markers", meta: at, ...look(at), marker: { size: 5, color: colour(at), opacity: 0.55 }, hovertemplate: seeds.map(one => hovered(at, one[0])), showlegend: false });
      const bar = (ends, centre) => ends && { type: "data", symmetric: false, array: [ends[1] - centre], arrayminus: [centre - ends[0]], thickness: 1, width: 4, color: colour(at) };
      traces.push({ x: [x], y: [y], mode: "markers", meta: at, ...look(at), name: label(at), hovertemplate: hovered(at),
        marker: { size: 12 + 8 * below, symbol: MARKS[mark(at)] + (below ? "-open" : ""), color: colour(at), line: { width: below || found.front.includes(at) ? 2 : 0, color: below ? colour(at) : ink("--text") } },
        ...(xs ? { error_x: bar(xs, x) } : {}), ...(ys ? { error_y: bar(ys, y) } : {}) });
    }
    return [traces, { xaxis: { title: bytesTitle(key), ...scale(means.map(one => one[1])) }, yaxis: { title: `${choices.which} ${figure.metric}${figure.unit}`, ...fitted([...means.map(one => one[3]), ...found.seeds.filter(one => isShown(data.runs[one[0]].variant)).map(one => one[2])], figure.limits) }, showlegend: few() }];
  },
  trajectories(figure, choices) {
    const traces = [];
    let title = { rounds: "round", flops: "GFLOP of the clients", simulated_seconds: "simulated seconds", seconds: "seconds" }[choices.over];
    for (const line of figure.lines.filter(one => isShown(one.variant))) {
      const at = line.variant, key = pair(one => one in line.bytes);
      const x = choices.over === "bytes" ? line.bytes[key] : line[choices.over];
      if (choices.over === "bytes") title = bytesTitle(key);
      if (line.each.length && !isDim(at)) for (const y of line.each) traces.push({ x, y, mode: "lines", line: { color: colour(at), width: 0.8, dash: "dot" }, opacity: 0.6, hoverinfo: "skip", showlegend: false });
      else if (line.band && !isDim(at)) traces.push({ x: [...x, ...[...x].reverse()], y: [...line.band[1], ...[...line.band[0]].reverse()], fill: "toself", fillcolor: colour(at) + "22", line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines" });
      traces.push({ x, y: line.mean, mode: "lines+markers", meta: at, ...look(at), name: label(at) + (line.is_complete ? "" : " (running)"), hovertemplate: hovered(at), marker: { size: 6, symbol: MARKS[mark(at)], maxdisplayed: 14 },
        line: { color: colour(at), width: state.highlight === at ? 3.5 : 2, dash: DASHES[Math.floor(at / COLOURS.length) % DASHES.length] } });
    }
    const shapes = figure.targets.map(y => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { dash: "dash", width: 1.5, color: ink("--text") } }));
    const annotations = figure.targets.map(y => ({ xref: "paper", x: 1, xanchor: "right", y, yanchor: "bottom", text: `target ${y}`, showarrow: false, font: { color: ink("--text") } }));
    return [traces, { xaxis: { title, ...(choices.over === "rounds" ? { tickformat: "d" } : {}), ...(choices.over === "bytes" ? scale(figure.lines.flatMap(line => line.bytes[pair(one => one in line.bytes)])) : {}) }, yaxis: { title: figure.metric, ...fitted([...figure.targets, ...figure.lines.filter(one => isShown(one.variant)).flatMap(line => [...line.mean, ...line.each.flat()])], figure.limits) }, shapes, annotations, showlegend: few() }];
  },
  totals(figure) {
    const rows = figure.variants.filter(one => isShown(one.variant)), places = rows.map((_, at) => at);
    const traces = figure.shares.map((share, at) => ({ type: "bar", orientation: "h", y: places, customdata: rows.map(one => folded(name(one.variant), 60)), x: rows.map(one => one.total[at]), name: bold(share), meta: rows.map(one => one.variant),
      marker: { color: partColour(share, at), opacity: rows.map(one => isDim(one.variant) ? 0.2 : 1) }, hovertemplate: `${bold(share)}<br>%{customdata}<br>%{x:.5~g} MB<extra></extra>` }));
    return [traces, { barmode: "stack", height: 160 + 28 * rows.length, yaxis: rowNames(rows.map(one => one.variant)), xaxis: { title: "MB (messages)" } }];
  },
  by_round(_, choices) {
    const figure = data.figures.totals, one = figure.variants.find(each => each.variant === Number(choices.variant));
    const rounds = one.dense.map((_, at) => at + 1);
    const traces = figure.shares.map((share, at) => ({ type: "bar", x: rounds, y: one.rounds[at] || [], name: bold(share), marker: { color: partColour(share, at) }, hovertemplate: `${bold(share)}<br>round %{x}: %{y:.5~g} kB<extra></extra>` })).filter((_, at) => one.rounds[at]);
    traces.push({ x: rounds, y: one.dense, mode: "lines", name: "dense FedAvg", line: { dash: "dash", color: ink("--text"), width: 1.5 } });
    return [traces, { barmode: "stack", bargap: 0.05, xaxis: { title: "round", tickformat: "d" }, yaxis: { title: "kB (messages)" } }];
  },
  gate_scores(figure, choices) {
    const run = figure[Number(choices.run)], traces = OUTCOMES.map((outcome, kind) => {
      const at = run.rounds.map((_, place) => place).filter(place => run.outcomes[place] === kind && run.scores[place] !== null);
      return { type: "scattergl", x: at.map(place => run.rounds[place]), y: at.map(place => run.scores[place]), text: at.map(place => `client ${run.clients[place]}`), mode: "markers", name: outcome, marker: { size: 5, color: OUTCOME_COLOURS[kind], opacity: 0.7 }, hovertemplate: "%{text}, round %{x}: %{y:.4~g}<extra>" + outcome + "</extra>" };
    }).filter(trace => trace.x.length).map(trace => ({ ...trace, type: "scatter" }));
    if (run.threshold) traces.push({ x: run.threshold.map((_, at) => at + 1), y: run.threshold, mode: "lines", name: "threshold", line: { color: ink("--text"), width: 2 } });
    return [traces, { xaxis: { title: "round", tickformat: "d" }, yaxis: { title: "score" } }];
  },
  gate_reasons() {
    const run = gateRun(), kinds = Object.keys(run.reasons);
    return [kinds.map((kind, at) => ({ type: "bar", x: run.reasons[kind].map((_, place) => place + 1), y: run.reasons[kind], name: bold(kind), marker: { color: SHADES[kind.split(":")[0]][kinds.slice(0, at).filter(one => one.split(":")[0] === kind.split(":")[0]).length % 4] }, hovertemplate: `${bold(kind)}<br>round %{x}: %{y}<extra></extra>` })),
      { barmode: "stack", bargap: 0.05, xaxis: { title: "round", tickformat: "d" }, yaxis: { title: "selected clients" } }];
  },
  gate_ages() {
    const run = gateRun();
    return [[{ type: "bar", x: run.ages.map(one => one[0]), y: run.ages.map(one => one[1]), marker: { color: OUTCOME_COLOURS[1] }, hovertemplate: "%{y} at age %{x}<extra></extra>", showlegend: false }],
      { height: 300, xaxis: { title: "age in rounds", dtick: 1 }, yaxis: { title: "reused updates" } }];
  },
  gate_clients() {
    const run = gateRun(), rounds = Math.max(...run.rounds), clients = Math.max(run.population, ...run.clients.map(one => one + 1));
    const cells = Array.from({ length: clients }, () => new Array(rounds).fill(null));
    run.rounds.forEach((round, at) => { cells[run.clients[at]][round - 1] = run.outcomes[at]; });
    const scale = OUTCOME_COLOURS.flatMap((shade, at) => [[at / 4, shade], [(at + 1) / 4, shade]]);
    return [[{ type: "heatmap", z: cells, x0: 1, dx: 1, y0: 0, dy: 1, zmin: -0.5, zmax: 3.5, colorscale: scale, xgap: 1, ygap: clients > 60 ? 0 : 1, hoverongaps: false,
      colorbar: { tickvals: [0, 1, 2, 3], ticktext: OUTCOMES, len: 0.6 }, hovertemplate: "client %{y}, round %{x}<extra></extra>" }],
      { height: Math.min(900, 180 + 9 * clients), xaxis: { title: "round", tickformat: "d", showgrid: false }, yaxis: { title: "client", autorange: "reversed", tickformat: "d", showgrid: false, zeroline: false } }];
  },
  forest(figure) {
    const rows = Array.isArray(figure) ? figure : figure[state.reference] || [];
    const traces = [], shapes = [{ type: "line", x0: 0, x1: 0, yref: "paper", y0: 0, y1: 1, line: { color: ink("--quiet"), width: 1 } }];
    const labels = rows.map((row, at) => folded(row.label, narrow() ? 26 : 60) + " ".repeat(at % 2));
    rows.forEach((row, at) => {
      const text = `<b>${folded(row.label, 80)}</b><br>${row.shown}${row.verdict ? "<br>" + row.verdict : ""}<extra></extra>`;
      traces.push({ x: row.seeds, y: row.seeds.map(() => at), mode: "markers", marker: { symbol: "line-ns-open", size: 9, color: ink("--quiet") }, hovertemplate: "%{x:.4~g}<extra>one seed</extra>" });
      traces.push({ x: [row.mean], y: [at], mode: "markers", marker: { size: 10, symbol: "square", color: COLOURS[0] }, hovertemplate: text,
        ...(row.interval ? { error_x: { type: "data", symmetric: false, array: [row.interval[1] - row.mean], arrayminus: [row.mean - row.interval[0]], color: COLOURS[0], thickness: 2 } } : {}) });
      for (const margin of row.margins || []) shapes.push({ type: "line", x0: margin, x1: margin, y0: at - 0.4, y1: at + 0.4, line: { color: COLOURS[3], dash: "dot", width: 2 } });
    });
    return [traces, { height: 140 + 44 * rows.length, showlegend: false, shapes, xaxis: { title: "difference" }, yaxis: { tickvals: rows.map((_, at) => at), ticktext: labels, range: [rows.length - 0.5, -0.5], automargin: true, zeroline: false } }];
  },
  forest_effects(rows) { return draw.forest(rows); },
  cost(figure, choices) {
    const rows = figure[choices.what].filter(one => isShown(one[0]));
    return [[{ type: "bar", orientation: "h", y: rows.map((_, at) => at), customdata: rows.map(one => folded(name(one[0]), 60)), x: rows.map(one => one[1]), meta: rows.map(one => one[0]), marker: { color: rows.map(one => colour(one[0])), opacity: rows.map(one => isDim(one[0]) ? 0.2 : 1) }, hovertemplate: "%{customdata}<br>%{x:.5~g}<extra></extra>", showlegend: false }],
      { height: 140 + 28 * rows.length, xaxis: { title: choices.what }, yaxis: rowNames(rows.map(one => one[0])) }];
  },
  paper_top_k(figure) { return beside(figure); },
  paper_accuracy(figure) { return beside(figure); },
  paper_convergence(figure, choices) { return beside({ ...figure, series: figure.series.filter(one => one.dataset === choices.dataset) }); },
  paper_decomposition(figure) { return beside(figure); },
};

// Numbers of these runs (filled marks) and of the paper (hollow marks) in one figure.
function beside(figure) {
  const traces = [], isBar = figure.kind === "bar";
  for (const one of figure.series) {
    const isOurs = one.side === "runs", shade = colour(one.at), bars = known => known ? { type: "data", array: known, thickness: 1, width: 3, color: shade } : undefined;
    if (one.band) traces.push({ x: [...one.x, ...[...one.x].reverse()], y: [...one.band[1], ...[...one.band[0]].reverse()], fill: "toself", fillcolor: shade + "22", line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines" });
    const shared = { x: one.x, y: one.y, name: `${bold(one.name)} (${one.side})`, customdata: one.labels.map(bold), error_x: bars(one.ex), error_y: bars(one.ey), hovertemplate: `${bold(one.name)} (${one.side})<br>%{customdata}: %{y:.5~g}<extra></extra>` };
    traces.push(isBar
      ? { ...shared, type: "bar", marker: { color: isOurs ? shade : ink("--back"), line: { width: 1.5, color: shade } } }
      : { ...shared, mode: one.band ? "lines" : "markers", line: { color: shade, width: 2 }, marker: { size: 10, color: shade, symbol: MARKS[mark(one.at)] + (isOurs ? "" : "-open") } });
  }
  const shapes = (figure.lines || []).map(y => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { dash: "dash", width: 1.5, color: ink("--text") } }));
  return [traces, { barmode: "group", xaxis: { title: figure.x }, yaxis: { title: figure.y }, shapes, showlegend: true }];
}

const gateRun = () => data.figures.gate_scores[Number(choicesOf("gate_scores").run)];
const partColour = (share, at) => share.includes("header") ? "#8a8f98" : share.includes("control") ? "#CC79A7" : (share.startsWith("down") ? ["#56B4E9", "#7A5195", "#8C8C00", "#999933"] : ["#0072B2", "#D55E00", "#009E73", "#E69F00"])[at % 4];
const rowNames = places => ({ tickvals: places.map((_, at) => at), ticktext: places.map(at => folded(name(at), narrow() ? 18 : 34)), range: [places.length - 0.5, -0.5], automargin: true, zeroline: false });
const narrow = () => window.innerWidth < 640;
const choicesOf = key => Object.fromEntries(all("[data-choice]", find("#figure-" + key)).map(one => [one.dataset.choice, one.value]));

function layoutFor(own) {
  const grid = { gridcolor: ink("--line"), linecolor: ink("--line"), zerolinecolor: ink("--line"), automargin: true };
  const axis = given => ({ ...grid, ...given, ...(given && given.title ? { title: { text: bold(given.title), standoff: 8 } } : {}) });
  return { font: { family: "system-ui, sans-serif", size: narrow() ? 11 : 13, color: ink("--text") }, paper_bgcolor: ink("--back"), plot_bgcolor: ink("--back"), margin: { l: 48, r: 12, t: 12, b: 44 },
    hovermode: "closest", hoverlabel: { align: "left", bgcolor: ink("--panel"), font: { color: ink("--text") } }, height: narrow() ? 360 : 460, autosize: true, ...own, xaxis: axis(own.xaxis), yaxis: axis(own.yaxis),
    legend: { orientation: "h", y: -0.18, yanchor: "top", x: 0, font: { size: narrow() ? 10 : 12 } } };
}

async function drawOne(key) {
  const place = find(`[data-figure="${key}"]`);
  if (place.closest("details:not([open])")) return; // drawn when its section is opened: a closed one has no width
  const [traces, layout] = draw[key](data.figures[key], choicesOf(key));
  await Plotly.react(place, traces, layoutFor(layout), { displayModeBar: false, responsive: true });
  if (!place.dataset.isHeard) {
    place.dataset.isHeard = "yes";
    place.on("plotly_click", event => { const meta = event.points[0].data.meta, at = Array.isArray(meta) ? meta[event.points[0].pointNumber] : meta; if (at !== undefined) highlight(at); });
  }
}

// Content of the chosen reference, and each card's mark as the figures draw it.
function showReference() {
  for (const one of all("[data-reference]")) one.hidden = one.dataset.reference !== state.reference;
  for (const card of all(".card")) {
    const at = Number(card.dataset.variant);
    card.hidden = !isShown(at);
    find(".key", card).innerHTML = `<path d="${SHAPES[mark(at)]}" fill="${colour(at)}"/>`;
  }
}

// Open the section that a link leads to, and draw its figures.
function openAt(hash) { const part = hash.length > 1 && find(hash + " details.part"); if (part) part.open = true; }

async function drawAll() {
  showReference();
  for (const row of all("tr[data-variant]")) {
    const at = Number(row.dataset.variant);
    row.hidden = !isShown(at);
    row.classList.toggle("chosen", state.highlight === at);
  }
  for (const button of all("#variants button")) {
    const at = Number(button.dataset.variant);
    button.hidden = !isShown(at);
    button.setAttribute("aria-pressed", String(state.highlight === at));
  }
  for (const key of Object.keys(data.figures)) await drawOne(key);
  document.body.dataset.drawn = String(1 + Number(document.body.dataset.drawn || 0));
}

function highlight(at) { state.highlight = state.highlight === at ? null : at; remember(); drawAll(); }
function remember() {
  for (const one of all("[data-choice]")) state.choices[one.closest("figure").id + one.dataset.choice] = one.value;
  try { sessionStorage.setItem("fedreuse " + location.pathname, JSON.stringify(state)); } catch { /* the browser may forbid storage; the page works without it */ }
}
function recall() {
  try { Object.assign(state, JSON.parse(sessionStorage.getItem("fedreuse " + location.pathname) || "{}")); } catch { /* as above */ }
  if (state.highlight !== null && state.highlight >= data.variants.length) state.highlight = null;
  for (const key of KEYS) { const control = find("#" + key); if (control) { if (state[key] && (!control.options || [...control.options].some(one => one.value === state[key]))) control.value = state[key]; state[key] = control.value; } }
  for (const one of all("[data-choice]")) { const value = state.choices[one.closest("figure").id + one.dataset.choice]; if ([...one.options].some(option => option.value === value)) one.value = value; }
}

function save(file, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function saveFigure(key, format) {
  const place = find(`[data-figure="${key}"]`), url = await Plotly.toImage(place, { format, width: 1000, height: place.offsetHeight, scale: format === "png" ? 2 : 1 });
  const body = url.slice(url.indexOf(",") + 1);
  if (format === "svg") save(`${key}.svg`, decodeURIComponent(body), "image/svg+xml");
  else save(`${key}.png`, Uint8Array.from(atob(body), sign => sign.charCodeAt(0)), "image/png");
}

function listen() {
  const theme = () => { if (state.theme) document.documentElement.dataset.theme = state.theme; else delete document.documentElement.dataset.theme; };
  theme();
  for (const key of KEYS) find("#" + key)?.addEventListener("input", event => { state[key] = event.target.value; theme(); remember(); drawAll(); });
  find("#controls").addEventListener("submit", event => event.preventDefault());
  for (const one of all("[data-choice]")) one.addEventListener("input", () => { remember(); drawAll(); });
  for (const one of all("#variants button")) one.addEventListener("click", () => highlight(Number(one.dataset.variant)));
  for (const one of all("[data-save]")) one.addEventListener("click", () => saveFigure(one.closest("figure").id.slice(7), one.dataset.save));
  for (const one of all("[data-table]")) one.addEventListener("click", () => save(`${one.dataset.table}.${one.dataset.form === "csv" ? "csv" : "tex"}`, data.tables[one.dataset.table][one.dataset.form], "text/plain"));
  for (const part of all("details.part")) part.addEventListener("toggle", async () => { for (const place of all(".plot", part)) await drawOne(place.dataset.figure); });
  for (const link of all("nav a")) link.addEventListener("click", () => openAt(link.hash));
  addEventListener("hashchange", () => openAt(location.hash));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; for (const part of all("details")) part.open = true; for (const key of Object.keys(data.figures)) drawOne(key); for (const place of all(".plot.js-plotly-plot")) Plotly.relayout(place, { width: 680, paper_bgcolor: "#fff", plot_bgcolor: "#fff", "font.color": "#000" }); });
  addEventListener("afterprint", () => { theme(); drawAll(); });
}

function follow() {
  const pause = Number(document.body.dataset.refresh);
  if (!pause) return;
  setInterval(async () => {
    const live = find("#live");
    try {
      const now = await (await fetch("state", { cache: "no-store" })).text();
      if (now !== document.body.dataset.state) { remember(); location.reload(); }
      live.textContent = `refreshed every ${pause} s`;
    } catch { live.textContent = "the server does not answer; this is the last known state"; }
  }, 1000 * pause);
}

(async () => {
  data = JSON.parse(await unpacked("data"));
  COLOURS = data.colours;
  const library = document.createElement("script");
  library.textContent = await unpacked("library");
  document.head.append(library);
  recall();
  listen();
  openAt(location.hash);
  await drawAll();
  follow();
})();
