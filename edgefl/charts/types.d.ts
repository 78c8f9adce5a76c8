/* Types of the scripts that every page shares. For the type checker alone: no browser reads this file. */

/** A chart as data: traces and a layout of plotly.js, whose colours are properties of the stylesheet. */
interface ChartSpec {
  traces: ChartTrace[];
  layout: Record<string, unknown>;
}

interface ChartTrace extends Record<string, unknown> {
  texttemplate?: string;
  z?: unknown[][];
}

interface EdgeFLChartsApi {
  draw(element: HTMLElement, spec: ChartSpec): Promise<unknown>;
  redraw(): void;
  release(element: HTMLElement): void;
}

interface Window {
  EdgeFLCharts: EdgeFLChartsApi;
  Plotly: {
    react(element: HTMLElement, traces: ChartTrace[], layout: object, config: object): Promise<unknown>;
    relayout(element: Element, change: object): Promise<unknown>;
    purge(element: HTMLElement): void;
  };
}

/** What plotly.js leaves on an element that it has drawn. */
interface Element {
  _fullLayout?: { width: number };
}
