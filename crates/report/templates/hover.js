(() => {
  "use strict";
  const values = JSON.parse(document.getElementById("values").textContent);
  const tip = document.getElementById("tip");
  const drawing = "http://www.w3.org/2000/svg";

  const make = (name, parent, attributes) => {
    const node = document.createElementNS(drawing, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return parent.appendChild(node);
  };
  const line = (parent, kind, text) => {
    const node = document.createElement(kind);
    node.textContent = text;
    return parent.appendChild(node);
  };

  // The value, the other curves at the same x, and what else is known of it.
  const fill = (figure, mark, marks, plane) => {
    const curves = values[figure].curves;
    const value = curves[mark.curve].values[mark.value];
    tip.textContent = "";
    line(tip, "h4", value.x);
    const rows = tip.appendChild(document.createElement("div"));
    rows.className = "rows";
    // On a surface the neighbours at one x are not those at one value.
    const here = plane ? [mark] : marks.filter((other) => curves[other.curve].values[other.value].x === value.x && Math.abs(other.x - mark.x) < 40);
    const seen = new Set();
    here.sort((a, b) => a.y - b.y);
    for (const other of here) {
      if (other !== mark && (other.curve === mark.curve || seen.has(other.curve))) continue;
      seen.add(other.curve);
      const row = rows.appendChild(document.createElement("p"));
      if (other === mark) row.className = "chosen";
      row.style.cssText = other.style;
      row.classList.add("curve");
      line(row, "i", "");
      line(row, "span", curves[other.curve].name);
      line(row, "b", curves[other.curve].values[other.value].y);
    }
    for (const text of value.lines) line(tip, "p", text);
    for (const text of value.doubts) line(tip, "p", text).className = "doubt";
  };

  const place = (x, y) => {
    const gap = 16;
    const left = x + gap + tip.offsetWidth > innerWidth - 8 ? x - gap - tip.offsetWidth : x + gap;
    const top = y + gap + tip.offsetHeight > innerHeight - 8 ? y - gap - tip.offsetHeight : y + gap;
    tip.style.left = Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(8, top) + "px";
  };

  for (const plot of document.querySelectorAll("figure .plot")) {
    for (const svg of plot.querySelectorAll("svg")) {
      const figure = svg.dataset.figure;
      const plane = "plane" in svg.dataset;
      const marks = Array.from(svg.querySelectorAll("[data-at]"), (node) => {
        const at = node.dataset.at.split(" ").map(Number);
        return { x: at[0], y: at[1], curve: at[2], value: at[3], style: node.parentNode.style.cssText };
      });
      if (!marks.length) continue;
      const box = svg.viewBox.baseVal;
      const cross = make("g", svg, { class: "cross", "aria-hidden": "true" });
      const across = make("path", cross, {});
      const ring = make("circle", cross, { r: 8 });
      let chosen = -1;

      const hide = () => {
        chosen = -1;
        cross.removeAttribute("data-on");
        tip.removeAttribute("data-on");
      };
      const show = (index, x, y) => {
        const mark = marks[index];
        const frame = svg.getBoundingClientRect();
        if (index !== chosen || !tip.hasAttribute("data-on")) {
          chosen = index;
          fill(figure, mark, marks, plane);
          cross.style.cssText = mark.style;
          across.setAttribute("d", `M${mark.x} 0V${box.height}M0 ${mark.y}H${box.width}`);
          ring.setAttribute("cx", mark.x);
          ring.setAttribute("cy", mark.y);
          cross.setAttribute("data-on", "");
          tip.setAttribute("data-on", "");
        }
        const scale = frame.width / box.width;
        place(x ?? frame.left + mark.x * scale, y ?? frame.top + mark.y * scale);
      };
      // Over the drawing, so that the browser's own tooltip of its title stays away.
      const cover = document.createElement("div");
      cover.className = "cover " + svg.getAttribute("class");
      cover.tabIndex = 0;
      cover.setAttribute("role", "application");
      cover.setAttribute("aria-label", "Values of the figure: left and right along a curve, up and down between curves");
      plot.appendChild(cover);
      const point = (event) => {
        const frame = svg.getBoundingClientRect();
        const x = (event.clientX - frame.left) * box.width / frame.width;
        const y = (event.clientY - frame.top) * box.height / frame.height;
        let best = 0;
        let least = Infinity;
        marks.forEach((mark, index) => {
          // The x decides first: a reader follows a vertical line. On a surface the nearest is meant.
          const distance = Math.abs(mark.x - x) * (plane ? 1 : 3) + Math.abs(mark.y - y);
          if (distance < least) {
            least = distance;
            best = index;
          }
        });
        show(best, event.clientX, event.clientY);
      };
      cover.addEventListener("pointermove", point);
      cover.addEventListener("pointerdown", point);
      cover.addEventListener("pointerleave", hide);
      cover.addEventListener("blur", hide);
      cover.addEventListener("keydown", (event) => {
        const now = marks[Math.max(chosen, 0)];
        const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
        if (event.key === "Escape") return hide();
        const step = steps[event.key];
        if (!step) return;
        event.preventDefault();
        let next = -1;
        let least = Infinity;
        marks.forEach((mark, index) => {
          const along = step[0] ? (mark.x - now.x) * step[0] : (mark.y - now.y) * step[1];
          const beside = plane ? mark.value === now.value : Math.abs(mark.x - now.x) < 20;
          const same = step[0] ? mark.curve === now.curve : beside && mark.curve !== now.curve;
          if (same && along > 0 && along < least) {
            least = along;
            next = index;
          }
        });
        if (chosen < 0) next = 0;
        if (next >= 0) show(next);
      });
    }
  }
  addEventListener("scroll", () => tip.removeAttribute("data-on"), { passive: true });

  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  let theme = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    button.textContent = "Theme: " + themes[theme];
    if (theme) document.documentElement.dataset.theme = themes[theme];
    else delete document.documentElement.dataset.theme;
  });
})();
