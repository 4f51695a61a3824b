"use strict";
// The pages can be read without this script; it adds what moves: the tabs, the slider, what stands under the cursor.
const data = JSON.parse(document.getElementById("data").textContent);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function element(tag, text, parent) {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
}

// Calls show(begin, end) with the bytes of the character that the pointer or the arrow keys have come to.
function onByte(root, events, show) {
  const text = root.querySelector(".heat");
  const spans = all("b[data-at]", text);
  let current = -1;
  const choose = (index) => {
    spans[current]?.classList.remove("on");
    current = index;
    spans[current].classList.add("on");
    const begin = Number(spans[current].dataset.at);
    show(begin, current + 1 < spans.length ? Number(spans[current + 1].dataset.at) : Infinity);
  };
  const indices = new Map(spans.map((span, index) => [span, index]));
  for (const event of events) {
    text.addEventListener(event, ({ target }) => {
      const index = indices.get(target.closest("b[data-at]"));
      if (index !== undefined) choose(index);
    });
  }
  text.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    choose(Math.min(Math.max(current + by, 0), spans.length - 1));
    spans[current].scrollIntoView({ block: "nearest" });
  });
}

// Buttons that show one of several panels.
for (const group of all("[data-tabs]")) {
  const panels = all(`[data-panel="${group.dataset.tabs}"]`);
  all("button", group).forEach((button, chosen) => button.addEventListener("click", () => {
    all("button", group).forEach((other, i) => other.setAttribute("aria-pressed", String(i === chosen)));
    panels.forEach((panel, i) => { panel.hidden = i !== chosen; });
  }));
}

// What the model wrote at each saved step.
for (const slider of all("input[data-samples]")) {
  const samples = data.samples[Number(slider.dataset.samples)];
  const show = () => {
    const { step, prompt, text, measured } = samples[Number(slider.value)];
    const place = slider.parentElement;
    const said = `step ${step.toLocaleString("en")}${measured ? ` · ${measured}` : ""}`;
    place.querySelector(".step").textContent = said;
    slider.setAttribute("aria-valuetext", said);
    const box = place.querySelector(".text");
    box.textContent = "";
    element("i", prompt, box);
    box.append(text);
  };
  slider.addEventListener("input", show);
  show();
}

// The ten likeliest bytes at the place under the cursor.
for (const root of all("[data-expected]")) {
  const { names, bytes, bits, candidates } = data.expected[Number(root.dataset.expected)];
  const box = root.querySelector(".candidates");
  const one = (at) => {
    const about = element("p", `byte ${at.toLocaleString("en")}: `, box);
    element("code", names[bytes[at]], about);
    if (!candidates[at].length) {
      about.append(" is dropped by these tokens and takes no bits");
      return;
    }
    about.append(` took ${bits[at].toFixed(2)} bits. The likeliest were`);
    const list = element("ol", "", box);
    for (const [byte, mille] of candidates[at]) {
      const item = element("li", "", list);
      if (byte === bytes[at]) item.className = "right";
      element("code", names[byte], item);
      item.append(` ${(mille / 10).toFixed(1)} %`);
    }
  };
  onByte(root, ["mouseover", "click"], (begin, end) => {
    box.textContent = "";
    for (let at = begin; at < Math.min(end, bytes.length); at += 1) one(at);
  });
}

// The places that the chosen head read to predict a byte: in the text, on the ruler, and in words.
for (const root of all(".looking")) {
  const spans = all("b[data-at]", root);
  const starts = spans.map((span) => Number(span.dataset.at));
  const spanOf = (at) => spans[starts.findLastIndex((start) => start <= at)];
  const ruler = root.querySelector(".ruler");
  const box = root.querySelector(".places");
  const choices = all("select[data-heads]");
  let head = data.heads[0];
  let chosen = -1;
  const show = (at) => {
    chosen = at;
    spans.forEach((span) => { span.style.background = ""; });
    ruler.textContent = "";
    box.textContent = "";
    const about = element("p", `To predict byte ${at.toLocaleString("en")}, `, box);
    element("code", data.names[data.bytes[at]], about);
    about.append(`, ${head.name} read most from`);
    const list = element("ol", "", box);
    const places = head.places[at];
    const strongest = places[1] || 1;
    for (let i = 0; i < places.length; i += 2) {
      const [distance, mille] = [places[i], places[i + 1]];
      // A row was written when the byte before its place had just been read.
      const read = at - distance - 1;
      const strength = 0.85 * mille / strongest;
      if (read >= 0) spanOf(read).style.background = `rgba(var(--heat), ${strength.toFixed(2)})`;
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const width = Math.max(1000 / head.reach, 3);
      const height = Math.max(2, 46 * mille / strongest);
      const x = head.reach > 1 ? (1000 - width) * (1 - distance / (head.reach - 1)) : 0;
      for (const [name, value] of Object.entries({ x, y: 46 - height, width, height })) bar.setAttribute(name, value);
      ruler.append(bar);
      if (list.childElementCount >= 8) continue;
      const item = element("li", "", list);
      element("code", read >= 0 ? data.names[data.bytes[read]] : "the start", item);
      item.append(distance ? ` ${distance.toLocaleString("en")} back, ` : " just read, ");
      item.append(`${(mille / 10).toFixed(1)} %`);
    }
  };
  onByte(root, ["click"], show);
  choices.forEach((choice) => choice.addEventListener("change", () => {
    head = data.heads[Number(choice.value)];
    choices.forEach((other) => { other.value = choice.value; });
    all("[data-of-head]").forEach((panel) => { panel.hidden = panel.dataset.ofHead !== choice.value; });
    root.querySelector(".farthest").textContent = `${(head.reach - 1).toLocaleString("en")} bytes back`;
    if (chosen >= 0) show(chosen);
  }));
}

// The text tinted by the chosen unit.
for (const choice of all("select[data-units]")) {
  const spans = all(".heat b[data-at]");
  const ends = spans.map((span, i) => (i + 1 < spans.length ? Number(spans[i + 1].dataset.at) : data.units[0].length) - 1);
  const tint = () => {
    const values = data.units[Number(choice.value)];
    spans.forEach((span, i) => {
      const value = values[ends[i]] / 100;
      span.style.background = `rgba(var(${value < 0 ? "--cool" : "--heat"}), ${(0.85 * Math.abs(value)).toFixed(2)})`;
      span.title = value.toFixed(2);
    });
  };
  choice.addEventListener("change", tint);
  if (data.units.length) tint();
}
