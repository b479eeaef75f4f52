// One key for everything; off inside fields, and altogether if the reader wants that.
import { act } from "./actions.js"
import { COMMANDS } from "./commands.js"
import { $ } from "./dom.js"
import { palette } from "./palette.js"
import { arrows } from "./tree.js"

const byKey = new Map(COMMANDS.map(([, key, name]) => [key, name]))
export const areKeysOn = () => localStorage.getItem("keys") !== "off"

export const onKey = (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); return palette() }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const target = event.target
  if (target.closest?.("dialog")) return
  if (target.closest?.("input, textarea, select")) { if (event.key === "Escape") target.blur(); return }
  if (event.key === "Escape") { document.body.removeAttribute("data-drawer"); return $(".menu")?.remove() }
  if (arrows(event)) return event.preventDefault()
  if (event.key === "Enter" && target.matches?.("#pages .e")) { event.preventDefault(); return act("fold") }
  if (!areKeysOn() || !byKey.has(event.key)) return
  event.preventDefault()
  act(byKey.get(event.key))
}
