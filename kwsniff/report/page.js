"use strict";
// Draws the charts, colours them for light, dark and paper, and opens proofs. No text of the data becomes markup.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  function colours() {
    const night = dark.matches && !printing;
    return night
      ? { ink: "#e6e8eb", quiet: "#a3a9b2", line: "#3a3f46", ground: "#15171a" }
      : { ink: "#1c1e21", quiet: "#565b63", line: "#d5d8dd", ground: "#ffffff" };
  }

  function paint(model, tone) {
    if (model.type === "Figure") {
      model.setv({ background_fill_color: tone.ground, border_fill_color: tone.ground, outline_line_color: tone.line });
    } else if (model.type.endsWith("Axis")) {
      model.setv({
        axis_line_color: tone.quiet, major_tick_line_color: tone.quiet, minor_tick_line_color: null,
        major_label_text_color: tone.ink, axis_label_text_color: tone.ink,
      });
    } else if (model.type.endsWith("Grid")) {
      model.setv({ grid_line_color: tone.line, grid_line_alpha: 0.6 });
    } else if (model.type === "Legend") {
      model.setv({
        background_fill_color: tone.ground, border_line_color: null, label_text_color: tone.ink,
        inactive_fill_color: tone.ground,
      });
    } else if (model.type === "Title") {
      model.setv({ text_color: tone.ink });
    }
  }

  function paintAll() {
    const tone = colours();
    for (const page of window.Bokeh ? Bokeh.documents : []) {
      for (const root of page.roots()) {
        for (const model of root.references()) paint(model, tone);
      }
    }
  }

  async function draw() {
    const charts = JSON.parse(document.getElementById("data").textContent);
    for (const { item } of charts) await Bokeh.embed.embed_item(item);
    paintAll();
    document.documentElement.dataset.drawn = String(charts.length);
  }

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const proof = target && target.querySelector("details.proof");
    if (proof) proof.open = true;
  }

  // Charts keep the width they have on the screen: on paper they fill an A4 page that lies, below a heading and
  // above a legend, since a drawing that goes over the edge of a page is cut off there.
  const PAPER = { width: 1000, height: 540 };
  function fit(onPaper) {
    for (const each of document.querySelectorAll(".chart")) {
      each.style.zoom = "";
      if (onPaper) each.style.zoom = Math.min(PAPER.width / each.offsetWidth, PAPER.height / each.offsetHeight);
    }
  }

  let folded = [];
  window.addEventListener("beforeprint", () => {
    printing = true;
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    fit(true);
    paintAll();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    for (const each of folded) each.open = false;
    fit(false);
    paintAll();
  });
  dark.addEventListener("change", paintAll);
  window.addEventListener("hashchange", openTarget);
  openTarget();
  draw();
})();
