// The keys, by what they are for.
import { COMMANDS } from "./commands.js"
import { show } from "./dialogs.js"

export const help = () => {
  const groups = Map.groupBy ? Map.groupBy(COMMANDS, ([group]) => group) : new Map()
  const sections = [...groups].map(([name, rows]) => `<section><h3 class="h">${name}</h3><dl>${rows.map(([, key, , about]) => `<dt><kbd>${key.replace("<", "&lt;")}</kbd></dt><dd>${about}</dd>`).join("")}</dl></section>`)
  const dialog = show(`<h2 id="ht">Keyboard</h2><p class="sub">Every button has a key. <kbd>Ctrl K</kbd> finds threads, messages and actions.</p>
    <div class="cols">${sections.join("")}</div>
    <footer><label class="row"><input type="checkbox"> Single keys are on</label><span class="grow"></span><button type="button" class="btn" data-close>Close <kbd>Esc</kbd></button></footer>`, "help")
  dialog.setAttribute("aria-labelledby", "ht")
  const box = dialog.querySelector("input")
  box.checked = localStorage.getItem("keys") !== "off"
  box.onchange = () => localStorage.setItem("keys", box.checked ? "on" : "off")
}
