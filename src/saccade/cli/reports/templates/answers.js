// The overview of answers: looks can be shown, and a link opens the steps of its search.
(() => {
  const tools = document.querySelector(".tools"), steps = document.querySelector(".steps");
  tools.elements.looks.addEventListener("input", (event) => {
    document.querySelector(".answers").classList.toggle("all", event.target.checked);
  });
  const open = () => {
    const wanted = location.hash.startsWith("#search-") && document.getElementById(location.hash.slice(1));
    if (!wanted) return;
    steps.hidden = false;
    for (const each of steps.querySelectorAll(".player")) each.hidden = each !== wanted;
    window.dispatchEvent(new Event("resize"));
    wanted.scrollIntoView();
    wanted.focus({ preventScroll: true });
  };
  window.addEventListener("hashchange", open);
  open();
})();
