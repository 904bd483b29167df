// Sorts and filters the cards of a sheet. Without it they stand in their first order.
(() => {
  const tools = document.querySelector(".tools"), sheet = document.querySelector(".sheet");
  const cards = [...sheet.children];
  const below = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const order = {
    doubt: (a, b) => b.dataset.doubt - a.dataset.doubt,
    novelty: (a, b) => b.dataset.novelty - a.dataset.novelty || b.dataset.doubt - a.dataset.doubt,
    name: (a, b) => below(a.dataset.name, b.dataset.name),
  };
  const show = () => {
    const { by, answer, text } = tools.elements;
    const wanted = text.value.toLowerCase();
    let shown = 0;
    for (const card of cards) {
      const fits = !answer?.value || card.dataset.answer === answer.value;
      card.hidden = !(fits && card.dataset.name.toLowerCase().includes(wanted));
      shown += !card.hidden;
    }
    sheet.append(...[...cards].sort(order[by.value]));
    tools.querySelector("output").textContent = `${shown} of ${cards.length} shown`;
  };
  tools.hidden = false;
  tools.addEventListener("input", show);
  tools.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
