"use strict";
(() => {
  // Five colours of viridis, which reads the same without colour; between them a straight line.
  const COLOURS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const PAUSE = 900; // milliseconds a step is shown while it plays
  const colour = (share) => {
    const at = Math.min(Math.max(share, 0), 1) * (COLOURS.length - 1), low = Math.min(Math.floor(at), COLOURS.length - 2);
    return COLOURS[low].map((c, k) => Math.round(c + (at - low) * (COLOURS[low + 1][k] - c)));
  };
  const css = (share) => `rgb(${colour(share).join(",")})`;
  const ramp = `linear-gradient(to right, ${[0, 1, 2, 3, 4].map((k) => css(k / 4)).join(",")})`;
  const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 0.0005 ? x.toFixed(Math.abs(x) < 0.01 ? 3 : 2) : x.toExponential(0)).replace("-", "−");
  const sharp = (canvas, width, height) => {
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d");
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return pen;
  };
  const outlined = (pen, box, k, line, width) => {
    const [x, y, w, h] = [box[0] * k, box[1] * k, (box[2] - box[0]) * k, (box[3] - box[1]) * k];
    pen.strokeStyle = "rgba(0,0,0,.65)";
    pen.lineWidth = width + 1.5;
    pen.strokeRect(x, y, w, h);
    pen.strokeStyle = line;
    pen.lineWidth = width;
    pen.strokeRect(x, y, w, h);
  };

  class Player {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector(".data").textContent);
      this.slider = root.querySelector("input[type=range]");
      this.button = root.querySelector(".play");
      this.looks = root.querySelector(".controls .looks");
      this.looks.addEventListener("input", () => this.draw());
      this.timer = null;
      this.slider.addEventListener("input", () => { this.stop(); this.draw(); });
      this.button.addEventListener("click", () => (this.timer ? this.stop() : this.play()));
      for (const [name, range] of [["mean", this.data.mean], ["deviation", this.data.deviation]]) {
        this.ends(name, ...range);
      }
      this.draw();
    }
    get step() { return Number(this.slider.value); }
    find(name) { return this.root.querySelector(name); }
    ends(name, low, high) {
      const parts = this.root.querySelectorAll(`.${name} .scale > *`);
      parts[0].textContent = short(low);
      parts[1].style.background = ramp;
      parts[2].textContent = short(high);
    }
    go(step) {
      this.slider.value = Math.min(Math.max(step, 1), this.data.steps.length);
      this.draw();
    }
    play() {
      if (this.step === this.data.steps.length) this.go(1);
      this.button.textContent = "❚❚";
      this.button.setAttribute("aria-label", "stop");
      this.timer = setInterval(() => {
        if (this.step === this.data.steps.length) this.stop();
        else this.go(this.step + 1);
      }, PAUSE);
    }
    stop() {
      clearInterval(this.timer);
      this.timer = null;
      this.button.textContent = "▶";
      this.button.setAttribute("aria-label", "play");
    }
    draw() {
      if (this.root.hidden) return;
      const now = this.data.steps[this.step - 1], before = this.step > 1 ? this.data.steps[this.step - 2].looks : 0;
      this.find("output").textContent = `${this.step} / ${this.data.steps.length}`;
      this.slider.setAttribute("aria-valuetext", `step ${this.step}, ${now.looks} looks`);
      this.seen(now, before);
      this.map("mean", now, 0);
      this.map("deviation", now, 1);
      this.map("gain", now, 2);
      this.ends("gain", 0, now.gain);
      this.order(now, before);
      this.numbers(now, before);
    }
    seen(now, before) {
      const canvas = this.find(".seen canvas"), stage = this.find(".seen .stage");
      const width = stage.clientWidth, k = width / this.data.size[0];
      const pen = sharp(canvas, width, this.data.size[1] * k), [low, high] = this.data.scores;
      const shown = this.looks.checked, from = shown ? before : now.looks;
      const order = [...Array(shown ? before : 0).keys()].sort((a, b) => this.data.told[a] - this.data.told[b]);
      for (const i of order) {
        const share = Math.min(Math.max((this.data.told[i] - low) / (high - low), 0), 1);
        pen.globalAlpha = 0.25 + 0.75 * share;
        outlined(pen, this.data.boxes[i], k, css(0.3 + 0.7 * share), 1);
      }
      pen.globalAlpha = 1;
      pen.font = "600 11px system-ui, sans-serif";
      for (let i = from; i < now.looks; i++) outlined(pen, this.data.boxes[i], k, "#74c0fc", 1.5);
      outlined(pen, now.box, k, "#ff7a33", 3.5);
      pen.textBaseline = "top";
      for (let i = from; i < now.looks; i++) {
        const box = this.data.boxes[i], text = String(i + 1), wide = pen.measureText(text).width + 6;
        pen.fillStyle = "rgba(10,40,70,.85)";
        pen.fillRect(box[0] * k, box[1] * k, wide, 14);
        pen.fillStyle = "#d0ebff";
        pen.fillText(text, box[0] * k + 3, box[1] * k + 2);
      }
    }
    map(name, now, which) {
      const [rows, columns] = this.data.map, bytes = atob(now.maps[which]), small = document.createElement("canvas");
      small.width = columns;
      small.height = rows;
      const pixels = new ImageData(columns, rows);
      for (let i = 0; i < rows * columns; i++) {
        const [r, g, b] = colour(bytes.charCodeAt(i) / 255);
        pixels.data.set([r, g, b, 255], 4 * i);
      }
      small.getContext("2d").putImageData(pixels, 0, 0);
      const canvas = this.find(`.${name} canvas`), width = this.find(`.${name} .stage`).clientWidth;
      const k = width / this.data.size[0], height = this.data.size[1] * k, pen = sharp(canvas, width, height);
      pen.imageSmoothingQuality = "high";
      pen.drawImage(small, 0, 0, width, height);
      outlined(pen, now.box, k, "#ff7a33", 2);
    }
    order(now, before) {
      const canvas = this.find(".order canvas"), width = canvas.clientWidth, height = canvas.clientHeight;
      const pen = sharp(canvas, width, height), style = getComputedStyle(this.root), [low, high] = this.range();
      const left = 34, foot = 20, n = this.data.told.length;
      const x = (i) => left + (n === 1 ? 0.5 : i / (n - 1)) * (width - left - 8);
      const y = (score) => 8 + (1 - (score - low) / (high - low)) * (height - foot - 14);
      pen.font = "11px system-ui, sans-serif";
      pen.fillStyle = style.getPropertyValue("--quiet");
      pen.strokeStyle = style.getPropertyValue("--line");
      for (const score of this.data.scores) {
        pen.beginPath();
        pen.moveTo(left, y(score));
        pen.lineTo(width - 4, y(score));
        pen.stroke();
        pen.fillText(short(score), 2, y(score) + 4);
      }
      pen.fillText("1", x(0) - 3, height - 4);
      pen.textAlign = "right";
      pen.fillText(`look ${n}`, width - 4, height - 4);
      pen.strokeStyle = "#ff7a33";
      pen.lineWidth = 2;
      pen.beginPath();
      let best = -Infinity;
      for (let i = 0; i < now.looks; i++) {
        const last = best;
        best = Math.max(best, this.data.told[i]);
        if (i > 0) pen.lineTo(x(i), y(last));
        if (i > 0) pen.lineTo(x(i), y(best));
        else pen.moveTo(x(i), y(best));
      }
      pen.stroke();
      for (let i = 0; i < now.looks; i++) {
        pen.fillStyle = style.getPropertyValue(i >= before ? "--c3" : "--quiet");
        pen.beginPath();
        pen.arc(x(i), y(this.data.told[i]), i >= before ? 3.5 : 2.5, 0, 7);
        pen.fill();
      }
    }
    range() {
      const all = [...this.data.told, ...this.data.scores];
      return [Math.min(...all), Math.max(...all)];
    }
    numbers(now, before) {
      const told = this.data.told.slice(0, now.looks), [x0, y0, x1, y1] = now.box.map(Math.round);
      const rows = [
        ["looks", `${now.looks} (${now.looks - before} new)`],
        ["best look", `${short(Math.max(...told))} (look ${told.indexOf(Math.max(...told)) + 1})`],
        ["expected of the best box", short(now.score)],
        ["probability it is right", now.probability > 0.99 ? "> 99 %" : `${(100 * now.probability).toFixed(0)} %`],
        ["best box, at", `${x0}, ${y0}`],
        ["best box, size", `${x1 - x0} × ${y1 - y0}`],
        ["largest improvement", short(now.gain)],
        ["time", now.seconds],
      ];
      this.find("dl").replaceChildren(...rows.flatMap(([name, value]) => {
        const [term, text] = [document.createElement("dt"), document.createElement("dd")];
        term.textContent = name;
        text.textContent = value;
        return [term, text];
      }));
    }
  }

  const all = [...document.querySelectorAll(".player")].map((root) => new Player(root));
  // The player that is used with keys: the one with the focus, or else the first that can be seen.
  const current = (players) => players.find((p) => p.root.contains(document.activeElement))
    || players.find((p) => p.root.getBoundingClientRect().bottom > 80) || players[0];
  document.addEventListener("keydown", (event) => {
    const player = current(all.filter((p) => p.root.offsetParent));
    if (!player || /^(INPUT|SELECT)$/.test(event.target.tagName) || event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { player.stop(); player.go(player.step + by); event.preventDefault(); }
  });
  const redraw = () => all.forEach((p) => p.draw());
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const jump = () => {
    const found = /step=(\d+)/.exec(location.hash);
    if (found) all.forEach((p) => p.go(Number(found[1])));
  };
  window.addEventListener("hashchange", jump);
  jump();
})();
