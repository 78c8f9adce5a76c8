/* Draws charts from data: an element <div data-chart="ID"> shows the traces and the layout in the JSON of
 * <script type="application/json" id="ID">. Colours and fonts in it are properties of the stylesheet, such as
 * "var(--series-1)", so a chart follows the page's light or dark scheme. Needs Plotly, and nothing that a strict
 * Content-Security-Policy forbids: no eval, no inline handler, no inline style.
 *
 * A live page calls EdgeFLCharts.draw(element, spec) with a new spec, or EdgeFLCharts.redraw() after changing the JSON.
 * It calls EdgeFLCharts.release(element) before it removes an element, because every drawn element is kept track of. */
"use strict";

(() => {
  const CONFIG = { displayModeBar: false, scrollZoom: false, doubleClick: "reset" };
  const DARK = window.matchMedia("(prefers-color-scheme: dark)");
  const COARSE = window.matchMedia("(pointer: coarse)");
  const NAMES_WIDTH = 90; // pixels beside the cells
  const CELL_WIDTH = 58; // pixels of "frozen 75"
  /** @type {Map<HTMLElement, ChartSpec>} */
  const drawn = new Map();
  const sizes = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const width = Math.floor(entry.contentRect.width);
      const now = entry.target._fullLayout;
      if (width > 0 && now && width !== Math.floor(now.width)) {
        window.Plotly.relayout(entry.target, { width });
      }
    }
  });

  /**
   * Replaces properties of the stylesheet by their values, in any JSON value.
   * @template Value
   * @param {Value} value
   * @param {CSSStyleDeclaration} style
   * @returns {Value}
   */
  function resolved(value, style) {
    return /** @type {Value} */ (resolvedValue(value, style));
  }

  /**
   * @param {unknown} value
   * @param {CSSStyleDeclaration} style
   * @returns {unknown}
   */
  function resolvedValue(value, style) {
    if (typeof value === "string") {
      const named = /^var\((--[\w-]+)\)$/.exec(value);
      return named ? style.getPropertyValue(named[1]).trim() : value;
    }
    if (Array.isArray(value)) {
      // An array that ends in a number is a row of numbers: long, and without colours.
      return typeof value[value.length - 1] === "number" ? value : value.map((one) => resolved(one, style));
    }
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, style)]));
    }
    return value;
  }

  /**
   * Leaves out the numbers in the cells of a heatmap if they would overlap.
   * @param {ChartTrace} trace
   * @param {number} width
   */
  function readable(trace, width) {
    const columns = trace.texttemplate && Array.isArray(trace.z) ? trace.z[0]?.length ?? 0 : 0;
    return columns > 0 && (width - NAMES_WIDTH) / columns < CELL_WIDTH ? { ...trace, texttemplate: "" } : trace;
  }

  /**
   * @param {HTMLElement} element
   * @param {ChartSpec} spec
   */
  function draw(element, spec) {
    drawn.set(element, spec);
    sizes.observe(element);
    const style = window.getComputedStyle(document.documentElement);
    const layout = resolved(spec.layout, style);
    const width = Math.max(element.clientWidth, 1);
    layout.width = width;
    if (COARSE.matches) {
      layout.dragmode = false; // a finger scrolls the page
    }
    const traces = resolved(spec.traces, style).map((trace) => readable(trace, width));
    return window.Plotly.react(element, traces, layout, CONFIG);
  }

  /** @param {HTMLElement} element */
  function release(element) {
    drawn.delete(element);
    sizes.unobserve(element);
    window.Plotly.purge(element);
  }

  /**
   * @param {HTMLElement} element
   * @returns {ChartSpec | null}
   */
  function read(element) {
    const source = document.getElementById(element.dataset.chart ?? "");
    return source === null ? null : JSON.parse(source.textContent ?? "");
  }

  /** @param {HTMLElement} element */
  function drawFromPage(element) {
    const spec = read(element);
    if (spec !== null) {
      draw(element, spec);
    }
  }

  /** @returns {NodeListOf<HTMLElement>} */
  function places() {
    return document.querySelectorAll("[data-chart]");
  }

  function drawAll() {
    places().forEach((element) => drawn.has(element) || drawFromPage(element));
  }

  function redraw() {
    drawn.forEach((spec, element) => draw(element, (element.dataset.chart && read(element)) || spec));
  }

  function start() {
    if (!("IntersectionObserver" in window)) {
      drawAll();
      return;
    }
    // A run of many groups has many charts: each is drawn when it comes near the visible part of the page.
    const near = new IntersectionObserver(
      (entries) => {
        for (const entry of entries.filter((one) => one.isIntersecting)) {
          near.unobserve(entry.target);
          drawFromPage(/** @type {HTMLElement} */ (entry.target));
        }
      },
      { rootMargin: "600px" },
    );
    places().forEach((element) => near.observe(element));
  }

  DARK.addEventListener("change", redraw);
  window.addEventListener("beforeprint", drawAll);
  window.EdgeFLCharts = { draw, redraw, release };
  start();
})();
