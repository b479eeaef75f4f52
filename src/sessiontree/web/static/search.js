// The search page: the arrows go from hit to hit, and what stands around the chosen one is shown beside it.
import { $, $$, element, get } from "./dom.js"

const SOON = 120
let asked = null, waiting = 0

/** Mark the words of a hit in the preview, and open what they are folded in. */
const mark = (pane, words) => {
  const ranges = [], texts = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.toLowerCase()
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range()
        range.setStart(node, at)
        range.setEnd(node, at + word.length)
        ranges.push(range)
        node.parentElement.closest("details")?.setAttribute("open", "")
      }
    }
  }
  CSS.highlights?.set("found", new Highlight(...ranges))
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
    mark(pane, new Set($$("mark", row).map((one) => one.textContent.toLowerCase())))
  } catch (error) {
    if (error.name === "AbortError") return
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
