"use strict";
// Draws the figures in the chosen language and theme, and again whenever one of them changes.
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const printing = window.matchMedia("print");
  let theme = null; // null: as the system has it

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const isText = (value) => value !== null && typeof value === "object" && "en" in value && "zh" in value;

  // A figure with its texts in one language and its colours looked up.
  function pick(value, language) {
    if (typeof value === "string") return value.replace(/var\((--[\w-]+)\)/g, (_, name) => css(name));
    if (Array.isArray(value)) {
      return typeof value[0] === "number" ? value : value.map((item) => pick(item, language));
    }
    if (isText(value)) return value[language];
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, pick(item, language)]));
  }

  function axis(own) {
    return {
      automargin: true, gridcolor: css("--line"), linecolor: css("--line"), tickcolor: css("--line"),
      zerolinecolor: css("--line"), fixedrange: false, ...own,
      title: { font: { size: 12, color: css("--soft") }, standoff: 8, ...(own && own.title) },
    };
  }

  function draw(figure, language) {
    const data = pick(figure.data, language);
    const layout = pick(figure.layout, language);
    for (const trace of data) {
      if (trace.colorscale === "heat") {
        trace.text = trace.z.map((row, at) => row.map(() => trace.rows[at]));
        delete trace.rows;
        trace.colorscale = [0, 1, 2, 3, 4].map((step) => [step / 4, css(`--heat-${step}`)]);
      }
    }
    const font = getComputedStyle(document.body).fontFamily;
    Plotly.react(`chart-${figure.id}`, data, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: font, size: 12, color: css("--soft") },
      margin: { l: 48, r: 12, t: 26, b: 44 }, hovermode: "closest", showlegend: data.length > 1,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: css("--ink") } },
      hoverlabel: { bgcolor: css("--surface"), bordercolor: css("--faint"), font: { color: css("--ink"), family: font } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--faint"), activecolor: css("--ink") },
      ...layout, xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    }, {
      responsive: true, displaylogo: false, displayModeBar: "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toggleSpikelines"],
    });
  }

  function apply() {
    const isDark = !printing.matches && (theme === null ? dark.matches : theme === "dark");
    root.dataset.theme = isDark ? "dark" : "light";
    const language = root.dataset.language;
    root.lang = language === "zh" ? "zh-CN" : "en";
    document.title = document.querySelector("h1").innerText + " · Aliquot";
    for (const button of document.querySelectorAll("[data-set-language]")) {
      button.setAttribute("aria-pressed", String(button.dataset.setLanguage === language));
    }
    for (const figure of figures) draw(figure, language);
  }

  for (const button of document.querySelectorAll("[data-set-language]")) {
    button.addEventListener("click", () => { root.dataset.language = button.dataset.setLanguage; apply(); });
  }
  document.querySelector("[data-theme-switch]").addEventListener("click", () => {
    theme = root.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  const asked = new URLSearchParams(location.hash.slice(1));
  if (["en", "zh"].includes(asked.get("lang"))) root.dataset.language = asked.get("lang");
  if (["light", "dark"].includes(asked.get("theme"))) theme = asked.get("theme");
  dark.addEventListener("change", apply);
  printing.addEventListener("change", apply);
  apply();
  root.dataset.drawn = String(document.querySelectorAll(".chart .main-svg").length);
})();
