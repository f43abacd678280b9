// Draws every chart from its table, with a cursor for mouse, touch and arrow keys.
(function () {
  "use strict";
  var root = document.documentElement;
  var charts = [];

  function colour(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  function cells(row) {
    return Array.prototype.map.call(row.cells, function (cell) { return cell.textContent; });
  }

  function numbers(table) {
    var rows = Array.prototype.map.call(table.tBodies[0].rows, cells);
    return Array.prototype.map.call(table.tHead.rows[0].cells, function (_, i) {
      return rows.map(function (row) {
        var value = parseFloat(row[i]);
        return isFinite(value) ? value : null;
      });
    });
  }

  function axis(label, size) {
    return {
      label: label, labelSize: 22, size: size, font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif",
      stroke: function () { return colour("--muted"); },
      grid: { stroke: function () { return colour("--line"); }, width: 1 },
      ticks: { stroke: function () { return colour("--line"); }, width: 1 }
    };
  }

  function series(head) {
    return {
      label: head.textContent,
      width: 2,
      dash: head.dataset.dashed === "1" ? [6, 5] : undefined,
      stroke: function () { return colour("--chart-" + head.dataset.colour); },
      points: { show: false }
    };
  }

  function options(figure, heads, width, say) {
    return {
      width: width, height: Math.min(300, Math.max(220, width * 0.55)),
      scales: { x: { time: false } },
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      axes: [axis(figure.dataset.x, 42), axis(figure.dataset.y, 50)],
      series: [{}].concat(Array.prototype.map.call(heads, series).slice(1)),
      hooks: { setCursor: [say] }
    };
  }

  // The legend: the name of each line, and its value where the cursor is.
  function legend(heads) {
    var list = document.createElement("ul");
    list.className = "legend";
    Array.prototype.slice.call(heads, 1).forEach(function (head) {
      var item = list.appendChild(document.createElement("li"));
      item.className = "colour-" + head.dataset.colour + (head.dataset.dashed === "1" ? " dashed" : "");
      item.textContent = head.textContent;
      item.appendChild(document.createElement("b"));
    });
    return list;
  }

  function show(figure, list, data, index) {
    var known = index !== null && index !== undefined;
    list.querySelectorAll("b").forEach(function (b, i) {
      var value = known ? data[i + 1][index] : null;
      b.textContent = value === null ? "" : " " + value;
    });
    figure.querySelector("output").textContent = known ? figure.dataset.x + ": " + data[0][index] : "";
  }

  function draw(figure) {
    var details = figure.querySelector("details");
    var table = figure.querySelector("table");
    var heads = table.tHead.rows[0].cells;
    var data = numbers(table);
    var box = document.createElement("div");
    box.className = "plot";
    box.tabIndex = 0;
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", figure.dataset.about + " Left and right arrow keys move the cursor.");
    var list = legend(heads);
    var where = document.createElement("output");
    figure.insertBefore(box, details);
    figure.insertBefore(where, details);
    figure.insertBefore(list, details);
    var plot = new uPlot(options(figure, heads, box.clientWidth, function (u) {
      show(figure, list, data, u.cursor.idx);
    }), data, box);
    box.addEventListener("keydown", function (event) {
      var step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      var last = data[0].length - 1;
      var now = plot.cursor.idx;
      var next = now === null || now === undefined ? 0 : Math.min(last, Math.max(0, now + step));
      plot.setCursor({ left: plot.valToPos(data[0][next], "x"), top: 0 });
    });
    details.open = false;
    charts.push({ plot: plot, box: box });
  }

  function resize() {
    charts.forEach(function (chart) {
      var width = chart.box.clientWidth;
      if (width && width !== chart.plot.width) {
        chart.plot.setSize({ width: width, height: Math.min(300, Math.max(220, width * 0.55)) });
      }
    });
  }

  function redraw() {
    charts.forEach(function (chart) { chart.plot.redraw(false, true); });
  }

  document.querySelectorAll("figure.chart").forEach(draw);
  addEventListener("resize", resize);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  // Paper is white, and nothing can be unfolded on it.
  var folded = [];
  addEventListener("beforeprint", function () {
    root.dataset.paper = "";
    folded = Array.prototype.slice.call(document.querySelectorAll("details:not([open]):not(.numbers)"));
    folded.forEach(function (one) { one.open = true; });
    redraw();
  });
  addEventListener("afterprint", function () {
    delete root.dataset.paper;
    folded.forEach(function (one) { one.open = false; });
    redraw();
  });
})();
