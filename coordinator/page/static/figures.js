/* Charts in a view. The charting library is large: it is asked for when a chart first comes near, and nothing waits for
 * it. A chart says in words what it shows, so it is of use without the library too. */

import { byId, element, setAttribute, setText } from "./dom.js";

let settings = { charts: true, style_ids: [] };
let library = null;

/* What the coordinator said about charts. */
export function useLibrary(session) {
  settings = session;
}

function load() {
  library ??= loadScripts().catch((error) => {
    library = null; // the coordinator may be back at the next try
    throw error;
  });
  return library;
}

async function loadScripts() {
  if (!settings.charts) {
    throw new Error("no library");
  }
  // The library leaves out the style elements that the page's policy forbids where their ids are taken.
  for (const id of settings.style_ids ?? []) {
    if (!byId(id)) {
      document.head.append(element("template", { id, class: "no-inline-styles" }));
    }
  }
  await loadScript("/page/plotly.js");
  await loadScript("/page/charts.js");
}

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: address });
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(address));
    });
    document.head.append(script);
  });
}

/* The charts of one place: shown, changed without a flicker, and let go. */
export class Figures {
  #place;
  #shown = new Map();
  #near;

  constructor(place, columns = "two") {
    this.#place = place;
    place.classList.add("charts", columns);
    this.#near = new IntersectionObserver((entries) => this.#came(entries), { rootMargin: "400px" });
  }

  show(charts) {
    const names = new Set(charts.map((chart) => chart.name));
    for (const [name, one] of this.#shown) {
      if (!names.has(name)) {
        this.#drop(name, one);
      }
    }
    charts.forEach((chart, place) => {
      const one = this.#shown.get(chart.name) ?? this.#make(chart.name);
      if (this.#place.children[place] !== one.figure) {
        this.#place.insertBefore(one.figure, this.#place.children[place] ?? null);
      }
      this.#write(one, chart);
    });
  }

  release() {
    this.#shown.forEach((one, name) => this.#drop(name, one));
  }

  #make(name) {
    const parts = {
      heading: element("h3"),
      plot: element("div", { class: "chart", role: "img" }),
      key: element("ul", { class: "key" }),
      caption: element("figcaption"),
    };
    const one = { ...parts, figure: element("figure", { "data-chart-name": name }, ...Object.values(parts)), text: "" };
    this.#shown.set(name, one);
    this.#near.observe(one.figure);
    return one;
  }

  #write(one, chart) {
    const text = JSON.stringify(chart);
    if (text === one.text) {
      return;
    }
    one.text = text;
    one.spec = chart.spec;
    setText(one.heading, chart.title);
    setText(one.caption, chart.summary);
    setAttribute(one.plot, "aria-label", `${chart.title}. ${chart.summary}`);
    one.plot.style.minHeight = `${chart.height ?? 250}px`;
    one.key.hidden = !chart.key?.length;
    one.key.replaceChildren(
      ...(chart.key ?? []).map(([kind, says]) => element("li", {}, element("span", { class: `swatch ${kind}` }), says)),
    );
    if (one.close) {
      this.#draw(one);
    }
  }

  #came(entries) {
    for (const entry of entries) {
      const one = this.#shown.get(entry.target.dataset.chartName);
      if (entry.isIntersecting && one?.figure === entry.target && !one.close) {
        one.close = true;
        this.#draw(one);
      }
    }
  }

  async #draw(one) {
    try {
      await load();
    } catch {
      this.#sayMissing(one);
      return;
    }
    // While the library came, the view may have been left.
    if (one.gone || !one.plot.isConnected || one.plot.clientWidth === 0) {
      return;
    }
    if (one.missing) {
      one.missing = false;
      one.plot.replaceChildren();
    }
    one.plot.dataset.drawn = "";
    await window.EdgeFLCharts.draw(one.plot, one.spec);
  }

  #sayMissing(one) {
    one.missing = true;
    one.plot.style.minHeight = "";
    const why = settings.charts
      ? "The charting library did not come. It is asked for again when there is something new to draw."
      : "The coordinator has no charting library. Install it there: pip install 'edgefl-toolkit[coordinator]'";
    one.plot.replaceChildren(element("p", { class: "empty" }, why));
  }

  #drop(name, one) {
    one.gone = true;
    this.#near.unobserve(one.figure);
    if ("drawn" in one.plot.dataset) {
      window.EdgeFLCharts.release(one.plot);
    }
    one.figure.remove();
    this.#shown.delete(name);
  }
}
