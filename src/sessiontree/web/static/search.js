// The search page: the arrows go from hit to hit, and what stands around the chosen one is shown beside it.
import { $, $$, element, get } from "./dom.js"

const SOON = 120, MOST_MARKS = 2000
let asked = null, waiting = 0

/** Mark the words of a hit in the preview, and open what they are folded in. */
const mark = (pane, words) => {
  if (!CSS.highlights || !words.length) return
  const pattern = new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "giu")
  const found = new Highlight(), texts = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node && found.size < MOST_MARKS; node = texts.nextNode()) {
    for (const { 0: word, index } of node.data.matchAll(pattern)) {
      const range = new Range()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      found.add(range)
      node.parentElement.closest("details")?.setAttribute("open", "")
      if (found.size >= MOST_MARKS) break
    }
  }
  CSS.highlights.set("found", found)
}

const choose = async (row) => {
  const pane = $("#preview")
  if (!pane?.checkVisibility() || row.ariaCurrent) return
  for (const one of $$(".hitrow[aria-current]")) one.removeAttribute("aria-current")
  row.ariaCurrent = "true"
  pane.ariaBusy = "true"
  asked?.abort()
  const { signal } = asked = new AbortController()
  try {
    pane.replaceChildren(element(await get(row.dataset.preview, { signal })))
    pane.ariaBusy = "false"
    mark(pane, [...new Set($$("mark", row).map((one) => one.textContent))])
  } catch (error) {
    if (error.name === "AbortError") return
    row.removeAttribute("aria-current")
    pane.replaceChildren()
    pane.ariaBusy = "false"
    throw error
  }
}

const first = () => { const row = $(".hitrow"); if (row && !$(".hitrow[aria-current]")) choose(row) }

const hits = $("#hits")
new MutationObserver(first).observe(hits, { childList: true })
hits.addEventListener("focusin", ({ target }) => { if (target.matches(".hitrow")) choose(target) })
hits.addEventListener("pointerover", ({ target }) => {
  clearTimeout(waiting)
  const row = target.closest(".hitrow")
  if (row) waiting = setTimeout(() => choose(row), SOON)
})
$("main.search").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key], rows = $$(".hitrow"), at = rows.indexOf(event.target)
  if (!by || (at < 0 && event.target.id !== "q")) return
  event.preventDefault()
  ;(at + by < 0 ? $("#q") : rows[at + by])?.focus()
})
first()
