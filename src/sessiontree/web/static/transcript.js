// The transcript: pages of entries in the document, empty space for the others, and the selected entry.
import { $, $$, app, below, column, element, get, json, remember, remembered } from "./dom.js"

const MOST_PAGES = 8
const PAGE = 120
const NEAR = 900
const ROW = 90
let height = 0
let loading = null

const pages = () => $$("#pages > .pg")
const bounds = () => {
  const all = pages()
  return all.length ? { start: +all[0].dataset.start, end: +all.at(-1).dataset.end } : { start: 0, end: 0 }
}
export const total = () => +app().dataset.total
export const entries = () => $$("#pages .e")
const byId = (id) => $(`#pages .e[data-id="${CSS.escape(id)}"]`)
export const selected = () => $("#pages .e.sel")

/** Change the document and leave what the reader sees where it is. */
const keeping = (change) => {
  const col = column(), top = col.getBoundingClientRect().top
  const anchor = entries().find((one) => one.getBoundingClientRect().bottom > top + 60)
  const before = anchor?.getBoundingClientRect().top
  change()
  if (anchor?.isConnected) col.scrollTop += anchor.getBoundingClientRect().top - before
}

/** How high an entry is where none was measured. It stays while a thread is shown: every place has one height on the bar. */
const rowHeight = () => {
  const { start, end } = bounds(), measured = $("#pages").offsetHeight
  if (!height && end - start > 20 && measured) height = Math.max(20, Math.min(400, measured / (end - start)))
  return height || ROW
}

const space = () => {
  const { start, end } = bounds()
  $("#above").style.height = `${start * rowHeight()}px`
  $("#below").style.height = `${Math.max(0, total() - end) * rowHeight()}px`
}

const fetchPage = async (start, count) => {
  const here = app()
  const made = element(await get(below("/entries", { at: here.dataset.at, start, count })))
  if (here !== app()) return null // the reader has gone elsewhere
  const facts = made.querySelector("template")
  here.dataset.total = facts.dataset.total
  return made.querySelector(".pg")
}

const load = (work) => {
  if (loading) return loading
  loading = work().finally(() => { loading = null; requestAnimationFrame(frame) })
  return loading
}

const more = (isBefore) => load(async () => {
  const { start, end } = bounds()
  const from = isBefore ? Math.max(0, start - 100) : end
  const page = await fetchPage(from, isBefore ? start - from : 100)
  if (!page) return
  keeping(() => {
    $("#pages")[isBefore ? "prepend" : "append"](page)
    const all = pages()
    if (all.length > MOST_PAGES) all.at(isBefore ? -1 : 0).remove()
    space()
  })
})

const replace = async (start) => {
  const page = await fetchPage(start, 120)
  if (!page) return
  $("#pages").replaceChildren(page)
  space()
}

const near = (place) => entries().findLast((one) => +one.dataset.at <= place) ?? entries()[0]

/** Show the entries around a place of the path; `id` is the entry to select there. */
export const go = async (place, id, { block = "start" } = {}) => {
  const at = (found) => (id !== undefined && byId(id)) || found
  const { start, end } = bounds()
  let target = at(id === undefined && place >= start && place < end ? near(place) : null)
  if (!target) {
    while (loading) await loading
    await load(() => replace(Math.max(0, place - 20)))
    target = at(near(place))
  }
  if (target) select(target, { block })
}

export const select = (target, { block = "nearest", focus = true } = {}) => {
  if (!target) return
  for (const one of $$("#pages .e.sel")) { one.classList.remove("sel"); one.tabIndex = -1 }
  target.classList.add("sel")
  target.tabIndex = 0
  if (focus) target.focus({ preventScroll: true })
  if (block) target.scrollIntoView({ block })
  history.replaceState(history.state, "", `${below("", { at: target.dataset.id })}#${target.id}`)
  document.dispatchEvent(new CustomEvent("selected", { detail: { id: target.dataset.id, at: +target.dataset.at } }))
}

export const step = async (by) => {
  const all = entries(), here = all.indexOf(selected())
  if (here < 0) return select(visible() ?? all[0])
  const next = all[here + by]
  if (next) return select(next)
  const { start, end } = bounds()
  if (by < 0 ? start > 0 : end < total()) { await more(by < 0); step(by) }
}

const visible = () => {
  const top = column().getBoundingClientRect().top + 50
  return entries().find((one) => one.getBoundingClientRect().bottom > top)
}

const JUMPS = { prompt: ".prompt", failure: ".fail" }
/** Jump to the next prompt or failure, or to the one before; what is not in the document is known to the server. */
export const jump = async (kind, by) => {
  const from = selected() ?? visible()
  if (!from) return
  const place = +from.dataset.at, selector = JUMPS[kind]
  const all = entries().filter((one) => one.matches(selector) || one.querySelector(selector))
  const loaded = by > 0 ? all.find((one) => +one.dataset.at > place) : all.findLast((one) => +one.dataset.at < place)
  if (loaded) return select(loaded, { block: "start" })
  const { id, at } = await json(below("/next.json", { at: app().dataset.at, start: place, kind, back: by < 0 || undefined }))
  if (id) await go(at, id)
}

/** The line at the top names the prompt that is answered at this place; the minimap frames what is on the screen. */
export const frame = () => {
  const col = column()
  if (!col) return
  const box = col.getBoundingClientRect(), { start, end } = bounds()
  const first = $("#pages").getBoundingClientRect()
  if (first.top > box.bottom + NEAR || first.bottom < box.top - NEAR) {
    const place = Math.max(0, Math.min(Math.floor(col.scrollTop / rowHeight()), total() - 60))
    load(async () => {
      await replace(Math.max(0, place - 30))
      near(place)?.scrollIntoView({ block: "start" })
    })
  } else if (start > 0 && first.top > box.top - NEAR) more(true)
  else if (end < total() && first.bottom < box.bottom + NEAR) more(false)
  const here = visible()
  const place = here ? +here.dataset.at : 0
  const links = $$("#prompts a")
  const at = links.findLastIndex((one) => +one.dataset.at <= place)
  links.forEach((one, number) => one.toggleAttribute("aria-current", number === at))
  if (links[at]) {
    $("#pn").textContent = +$("#pt").textContent - links.length + at + 1
    const prompt = byId(links[at].dataset.id)
    const isSeen = prompt && prompt.getBoundingClientRect().bottom > box.top + 50
    $("#pw").textContent = isSeen ? "" : $(".pw", links[at]).textContent
  } else if (links.length) {
    $("#pn").textContent = "…"
    $("#pw").textContent = ""
  }
  const svg = $("#minimap svg")
  if (svg && total()) {
    const tall = svg.viewBox.baseVal.height, used = Math.min(tall, 10 * +svg.dataset.bars), bottom = entries().findLast((one) => one.getBoundingClientRect().top < box.bottom)
    const to = bottom ? +bottom.dataset.at + 1 : place + 1
    $(".vp", svg).setAttribute("y", used * place / total())
    $(".vp", svg).setAttribute("height", Math.max(14, used * (to - place) / total()))
  }
}

export const isAtEnd = () => {
  const col = column()
  return bounds().end >= total() && col.scrollHeight - col.scrollTop - col.clientHeight < 80
}

/** The page at the end that has room for one more entry. */
const lastPage = (place) => {
  const last = pages().at(-1)
  if (last && last.childElementCount < PAGE) return last
  const made = document.createElement("section")
  made.className = "pg"
  made.dataset.start = made.dataset.end = place
  $("#pages").append(made)
  return made
}

/** Take in what was committed: entries that are there already are replaced, new ones come below. */
export const extend = ({ html, start, end, total: count }) => {
  const wasAtEnd = isAtEnd(), hasEnd = bounds().end >= Math.min(total(), start)
  const before = total()
  app().dataset.total = count
  if (hasEnd) keeping(() => {
    for (const one of $$(".e", element(html))) {
      const old = document.getElementById(one.id)
      if (old?.closest("#pages")) { one.classList.toggle("sel", old.classList.contains("sel")); old.replaceWith(one) } else lastPage(one.dataset.at).append(one)
      const page = one.closest(".pg")
      page.dataset.end = Math.max(+page.dataset.end, +one.dataset.at + 1)
    }
    const all = pages()
    if (all.length) all.at(-1).dataset.end = Math.max(+all.at(-1).dataset.end, end)
    // Whoever follows the end loses what is far above; whoever reads above, the end.
    if (all.length > MOST_PAGES) all.at(wasAtEnd ? 0 : -1).remove()
    space()
  })
  else keeping(space)
  if (wasAtEnd) column().scrollTop = column().scrollHeight
  requestAnimationFrame(frame)
  return { fresh: count - before, wasAtEnd }
}

let shown = null
/** A line above what was committed since this browser last looked at the thread; its other branches are another matter. */
const markNew = () => {
  const { thread, leaf, head, total: count } = app().dataset
  const seen = thread === shown ? null : remembered(thread)
  shown = thread
  if (leaf !== head) return
  if (seen && seen.leaf !== leaf && seen.total < +count) {
    const first = entries().find((one) => +one.dataset.at >= seen.total)
    if (first) {
      const line = document.createElement("div")
      line.className = "newline"
      line.textContent = `New since you left, ${new Date(seen.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`
      first.before(line)
    }
  }
  remember(thread, { leaf, total: +count, time: Date.now() })
}

export const mount = () => {
  const col = column()
  if (!col || !app()) return
  height = 0
  space()
  markNew()
  let isWaiting = false
  col.addEventListener("scroll", () => {
    if (isWaiting) return
    isWaiting = true
    requestAnimationFrame(() => { isWaiting = false; frame() })
  }, { passive: true })
  const wanted = app().dataset.selected && byId(app().dataset.selected)
  if (wanted) { select(wanted, { block: "start", focus: false }) } else if (total() > 400 || app().dataset.live) col.scrollTop = col.scrollHeight
  frame()
}
