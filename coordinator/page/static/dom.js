/* The few things that every view does to the document. Text is always put in as text: nothing here reads markup. */

export function byId(id) {
  return document.getElementById(id);
}

/* Makes an element. Children are elements or texts. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children);
  return made;
}

/* Writes only what is new: a page that repaints often should not lay itself out for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

export function setAttribute(node, name, value) {
  if (value === null) {
    node.removeAttribute(name);
  } else if (node.getAttribute(name) !== value) {
    node.setAttribute(name, value);
  }
}

/* A problem and what to do about it, in a place that is read out. */
export function showProblem(place, problem) {
  if (problem === null) {
    place.replaceChildren();
    return;
  }
  const fix = problem.fix ? [element("br"), problem.fix] : [];
  place.replaceChildren(element("p", { class: "notice" }, element("strong", {}, problem.message), ...fix));
}

/* Runs `work` once before the next picture, however often it is asked for. A hidden page draws no pictures. */
export function beforePaint(work) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        work();
      });
    }
  };
}

/* Runs `work` once, `wait` milliseconds after it was first asked for: news that keep coming do not put it off. */
export function later(work, wait) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      setTimeout(() => {
        asked = false;
        work();
      }, wait);
    }
  };
}

const written = new WeakMap();

/* Writes a list anew only where something in it is new: a reader may have selected its text. */
function writeRows(place, rows, make) {
  const text = JSON.stringify(rows);
  if (written.get(place) !== text) {
    written.set(place, text);
    place.replaceChildren(...rows.map((row) => element("div", {}, ...make(row))));
  }
}

/* Names and values as a list. */
export function pairs(place, rows) {
  writeRows(place, rows, ([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
}

/* Figures in large type: a name, a value, a note. */
export function tiles(place, rows) {
  writeRows(place, rows, ([name, value, note]) => [
    element("dt", {}, name),
    element("dd", { class: "value" }, value),
    element("dd", { class: "note" }, note ?? ""),
  ]);
}
