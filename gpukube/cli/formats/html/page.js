
(() => {
  const form = document.querySelector("form.tools");
  addEventListener("beforeprint", () => document.querySelectorAll("details.pool").forEach((one) => { one.open = true; }));
  if (!form) return;
  const items = [...document.querySelectorAll(".item")];
  const groups = [...document.querySelectorAll(".group")].reverse();
  const texts = new Map();
  const words = (item) => {
    if (!texts.has(item)) {
      let text = item.textContent;
      for (let up = item.parentElement; up; up = up.parentElement) text += " " + (up.dataset.name || "");
      texts.set(item, text.toLowerCase());
    }
    return texts.get(item);
  };
  const filter = () => {
    const [text, state] = [form.elements.text.value.trim().toLowerCase(), form.elements.state.value];
    let shown = 0;
    for (const item of items) {
      const fits = (!state || item.classList.contains(state)) && (!text || words(item).includes(text));
      item.hidden = !fits;
      shown += fits;
    }
    const filtered = text || state;
    for (const group of groups) group.hidden = Boolean(filtered && !group.querySelector(".item:not([hidden])"));
    form.elements.shown.value = filtered ? `${shown} of ${items.length} shown` : "";
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("click", (event) => {
    const open = event.target.dataset.open;
    if (open) document.querySelectorAll("details.pool").forEach((one) => { one.open = open === "yes"; });
  });
  form.hidden = false;
  filter();
})();
