// Light, dark, or as the system has it.

const themes = ["system", "light", "dark"];

export function startTheme(button) {
  let at = Math.max(0, themes.indexOf(localStorage.getItem("weft-theme")));
  const set = () => {
    document.documentElement.dataset.theme = themes[at];
    button.querySelector("span").textContent = themes[at];
    localStorage.setItem("weft-theme", themes[at]);
  };
  button.addEventListener("click", () => {
    at = (at + 1) % themes.length;
    set();
  });
  set();
}
