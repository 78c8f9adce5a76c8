/* Charts in a view. The charting library is large: it is loaded when a chart first comes near the visible part of the
 * page, and nothing waits for it. A chart says in words what it shows, so it is useful without the library as well. */

import { element, setAttribute, setText } from "./dom.js";

/**
 * @typedef {object} Shown a chart in the document
 * @property {HTMLElement} figure
 * @property {HTMLElement} heading
 * @property {HTMLDivElement} plot
 * @property {HTMLUListElement} key
 * @property {HTMLElement} caption
 * @property {string} text what is written, as JSON
 * @property {ChartSpec | null} spec
 * @property {boolean} close whether it came near the visible part of the page
 * @property {boolean} gone
 * @property {boolean} missing whether it says that the library is missing
 */

/** @type {Pick<SessionInfo, "charts" | "style_ids">} */
let settings = { charts: true, style_ids: [] };
/** @type {Promise<void> | null} */
let library = null;

/**
 * Takes what the coordinator says about charts.
 * @param {SessionInfo} session
 */
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
  // The page's policy forbids style elements. The library does not add one whose id is taken.
  for (const id of settings.style_ids ?? []) {
    if (document.getElementById(id) === null) {
      document.head.append(element("template", { id, class: "no-inline-styles" }));
    }
  }
  await loadScript("/page/plotly.js");
  await loadScript("/page/charts.js");
}

/**
 * @param {string} address
 * @returns {Promise<void>}
 */
function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = element("script", { src: address });
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(address));
    });
    document.head.append(script);
  });
}

/** The charts of one place: shows them, changes them without flicker, and removes them. */
export class Figures {
  #place;
  /** @type {Map<string, Shown>} */
  #shown = new Map();
  #near;

  /**
   * @param {HTMLElement} place
   * @param {string} [columns]
   */
  constructor(place, columns = "two") {
    this.#place = place;
    place.classList.add("charts", columns);
    this.#near = new IntersectionObserver((entries) => this.#came(entries), { rootMargin: "400px" });
  }

  /** @param {ChartInfo[]} charts */
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

  /** @param {string} name */
  #make(name) {
    const parts = {
      heading: element("h3"),
      plot: element("div", { class: "chart", role: "img" }),
      key: element("ul", { class: "key" }),
      caption: element("figcaption"),
    };
    const figure = element("figure", { "data-chart-name": name }, ...Object.values(parts));
    /** @type {Shown} */
    const one = { ...parts, figure, text: "", spec: null, close: false, gone: false, missing: false };
    this.#shown.set(name, one);
    this.#near.observe(one.figure);
    return one;
  }

  /**
   * @param {Shown} one
   * @param {ChartInfo} chart
   */
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

  /** @param {IntersectionObserverEntry[]} entries */
  #came(entries) {
    for (const entry of entries) {
      const one = this.#shown.get(entry.target.getAttribute("data-chart-name") ?? "");
      if (entry.isIntersecting && one?.figure === entry.target && !one.close) {
        one.close = true;
        this.#draw(one);
      }
    }
  }

  /** @param {Shown} one */
  async #draw(one) {
    try {
      await load();
    } catch {
      this.#sayMissing(one);
      return;
    }
    // The reader may have left the view while the library was loading.
    if (one.gone || one.spec === null || !one.plot.isConnected || one.plot.clientWidth === 0) {
      return;
    }
    if (one.missing) {
      one.missing = false;
      one.plot.replaceChildren();
    }
    one.plot.dataset.drawn = "";
    await window.EdgeFLCharts.draw(one.plot, one.spec);
  }

  /** @param {Shown} one */
  #sayMissing(one) {
    one.missing = true;
    one.plot.style.minHeight = "";
    const why = settings.charts
      ? "The charting library did not come. It is asked for again when there is something new to draw."
      : "The coordinator has no charting library. Install it there: pip install 'edgefl-toolkit[coordinator]'";
    one.plot.replaceChildren(element("p", { class: "empty" }, why));
  }

  /**
   * @param {string} name
   * @param {Shown} one
   */
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
