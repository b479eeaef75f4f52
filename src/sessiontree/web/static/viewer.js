// What must move. Everything else is plain HTML from the server.
import { act } from "./actions.js"
import { $, $$, app, column, element, get, isPhone, NoAnswer, say } from "./dom.js"
import { onKey } from "./keys.js"
import { toast } from "./toast.js"
import { go, select } from "./transcript.js"
import { filter, mark } from "./tree.js"
import { mountAll, visit } from "./visit.js"

const view = (name) => {
  document.body.dataset.view = name
  for (const tab of $$(".tabs [data-view]")) tab.toggleAttribute("aria-current", tab.dataset.view === name)
}

document.addEventListener("selected", ({ detail }) => mark(detail.id, detail.at))

document.addEventListener("click", async (event) => {
  const target = event.target
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
  const button = target.closest("[data-do]")
  if (button) { event.preventDefault(); return act(button.dataset.do, button) }
  const pane = target.closest("a[data-view]")
  if (pane && $(".app")) { event.preventDefault(); return view(pane.dataset.view) }
  const chosen = target.closest("button[data-filter]")
  if (chosen) return filter(chosen.dataset.filter)
  const more = target.closest("[data-more]")
  if (more) { event.preventDefault(); return more.replaceWith(element(await get(more.href))) }
  const link = target.closest("a[href^='/t/']")
  if (link && app()) {
    event.preventDefault()
    if (isPhone()) view("transcript")
    const { id, at } = link.dataset
    if (at !== undefined) return go(+at, id)
    const y = link.dataset.sibling ? link.closest(".e")?.getBoundingClientRect().top ?? null : null
    return visit(link.href, { y })
  }
  const entry = target.closest("#pages .e")
  if (entry && !target.closest("a, button, summary, input") && !String(getSelection())) select(entry, { block: null })
})

document.addEventListener("click", (event) => {
  const dialog = event.target.closest("dialog")
  if (dialog && event.target === dialog) dialog.close()
})
addEventListener("keydown", onKey)
addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof NoAnswer)) return
  event.preventDefault()
  toast(event.reason.message, { isBad: true })
})
document.addEventListener("click", (event) => {
  if (event.target.closest("#pill")) { const col = column(); col.scrollTop = col.scrollHeight }
})

// More threads come while one scrolls; the filter asks while one types.
const moreThreads = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting) one.target.click()
})
new MutationObserver(() => { for (const one of $$("[data-more]:not([data-seen])")) { one.dataset.seen = ""; moreThreads.observe(one) } })
  .observe(document.body, { childList: true, subtree: true })
for (const one of $$("[data-more]")) moreThreads.observe(one)

let typing = 0, asked = null
const fill = async (box, url) => {
  asked?.abort()
  const { signal } = asked = new AbortController()
  try {
    $(box).replaceChildren(element(await get(url, { signal })))
    $(box).removeAttribute("aria-busy")
    say($(".sum, .nothing", $(box))?.textContent ?? "")
  } catch (error) { if (error.name !== "AbortError") throw error }
}
document.addEventListener("input", ({ target }) => {
  if (target.id !== "filter" && target.id !== "q") return
  const box = target.id === "filter" ? "#threads" : "#hits"
  $(box).setAttribute("aria-busy", "true")
  clearTimeout(typing)
  typing = setTimeout(() => {
    const query = new URLSearchParams(new FormData(target.form))
    if (box === "#threads") return fill(box, `/threads?${query}`)
    history.replaceState(null, "", `/search?${query}`)
    fill(box, `/search/hits?${query}`)
  }, 60)
})

// A chip opens the values that there are to filter by.
document.addEventListener("click", async (event) => {
  const chip = event.target.closest("[data-facet]")
  const old = $(".menu")
  old?.remove()
  if (!chip || old?.dataset.of === chip.dataset.facet) return
  const menu = element(await get(`/facets/${chip.dataset.facet}`)).firstElementChild
  menu.classList.add("menu")
  menu.dataset.of = chip.dataset.facet
  chip.closest(".phead").after(menu)
  $("a", menu)?.focus()
})

mountAll()
