// The tree: a window of rows with room for the others, folding, filters, and the minimap.
import { $, $$, app, below, element, get } from "./dom.js"
import { frame, go, total } from "./transcript.js"

const FILTERS = ["all", "prompts", "talk", "labels"]
let toggled = new Set()
let asked = 0

const box = () => $("#tree")
const rows = () => $$("#tree .tn")
const list = () => $("#tree .tree")
const rowHeight = () => rows()[0]?.offsetHeight || 27

const room = () => {
  const tree = list()
  if (!tree) return
  const { start, total: all } = tree.dataset, high = rowHeight()
  tree.style.paddingTop = `${8 + start * high}px`
  tree.style.paddingBottom = `${24 + Math.max(0, all - start - rows().length) * high}px`
}

/** Whether rows are where the reader looks; the others are only room for them. */
const isInSight = () => {
  const tree = list(), top = box().scrollTop, start = tree ? +tree.dataset.start : 0
  return !tree || (top < (start + rows().length) * rowHeight() && top + box().clientHeight > start * rowHeight() + 8)
}
/** The first row to ask for, so that those in sight are there. */
const wantedStart = () => Math.max(0, Math.floor(box().scrollTop / rowHeight()) - 80)

export const draw = async (params = {}) => {
  const number = ++asked
  const selected = $("#pages .e.sel")?.dataset.id
  const html = await get(below("/tree", { at: app().dataset.at, filter: box().dataset.filter, toggled: [...toggled], around: selected, ...params }))
  if (number !== asked || !app()) return
  const scrolled = box().scrollTop, hadFocus = document.activeElement?.closest("#tree") && document.activeElement.dataset.id
  const made = element(html), map = made.querySelector("template")
  map.remove()
  box().replaceChildren(made)
  $("#minimap").replaceChildren(map.content)
  room()
  box().scrollTop = scrolled
  const now = $("#pages .e.sel") // another entry may have been selected, or none be there any more
  if (now) mark(now.dataset.id, +now.dataset.at, { scroll: false })
  if (!isInSight()) ($("#tree .tn[aria-selected]") ?? rows().at(-1))?.scrollIntoView({ block: "nearest" })
  frame()
  if (hadFocus) $(`#tree .tn[data-id="${CSS.escape(hadFocus)}"]`)?.focus({ preventScroll: true })
}

let isDrawing = false, isStale = false
/** Draw again because something was committed. What comes while one drawing is under way needs only one more. */
export const redraw = async () => {
  isStale = true
  if (isDrawing) return
  isDrawing = true
  try { while (isStale) { isStale = false; await draw(list() ? { start: wantedStart() } : {}) } } finally { isDrawing = false }
}

/** Select the row of an entry, or the nearest one above it where it has none. */
export const mark = (id, place, { scroll = true } = {}) => {
  const all = rows()
  const row = all.find((one) => one.dataset.id === id) ?? all.findLast((one) => one.dataset.at !== undefined && +one.dataset.at <= place)
  for (const one of all) { one.removeAttribute("aria-selected"); one.tabIndex = -1 }
  if (!row) return
  row.setAttribute("aria-selected", "true")
  row.tabIndex = 0
  if (scroll) row.scrollIntoView({ block: "nearest" })
}

export const toggle = (row = $("#tree .tn[aria-selected]")) => {
  if (!row?.hasAttribute("aria-expanded")) return
  const id = row.dataset.id
  if (!toggled.delete(id)) toggled.add(id)
  row.setAttribute("aria-expanded", row.getAttribute("aria-expanded") !== "true")
  return draw({ start: list().dataset.start })
}

export const foldAll = () => {
  const open = rows().filter((one) => one.getAttribute("aria-expanded") === "true").map((one) => one.dataset.id)
  if (open.length) for (const id of open) { if (!toggled.delete(id)) toggled.add(id) }
  else toggled.clear()
  return draw({ start: 0 })
}

export const filter = (name) => {
  const now = box().dataset.filter
  box().dataset.filter = name ?? FILTERS[(FILTERS.indexOf(now) + 1) % FILTERS.length]
  for (const one of $$(".treepane [data-filter]:not(#tree)")) one.setAttribute("aria-pressed", one.dataset.filter === box().dataset.filter)
  return draw()
}

/** Arrow keys do what ARIA says of trees. */
export const arrows = (event) => {
  const row = event.target.closest(".tn")
  if (!row) return false
  const all = rows(), at = all.indexOf(row), level = +row.getAttribute("aria-level")
  const fold = row.getAttribute("aria-expanded")
  const moves = {
    ArrowDown: () => all[at + 1]?.focus(),
    ArrowUp: () => all[at - 1]?.focus(),
    Home: () => all[0]?.focus(),
    End: () => all.at(-1)?.focus(),
    ArrowRight: () => fold === "false" ? toggle(row) : all[at + 1]?.focus(),
    ArrowLeft: () => fold === "true" ? toggle(row) : all.slice(0, at).findLast((one) => +one.getAttribute("aria-level") < level)?.focus(),
  }
  if (!moves[event.key]) return false
  moves[event.key]()
  return true
}

const onMap = (event) => {
  const svg = $("#minimap svg"), area = svg.getBoundingClientRect()
  const used = area.height * Math.min(1, 10 * +svg.dataset.bars / svg.viewBox.baseVal.height)
  const share = Math.max(0, Math.min(1, (event.clientY - area.top) / used))
  go(Math.min(total() - 1, Math.floor(share * total())))
}

export const mount = () => {
  if (!box()) return
  toggled = new Set()
  room()
  if (!list()) draw()
  else $("#tree .tn[aria-selected]")?.scrollIntoView({ block: "center" })
  let timer = 0
  box().addEventListener("scroll", () => {
    const tree = list()
    if (!tree) return
    const first = Math.floor(box().scrollTop / rowHeight()), last = first + Math.ceil(box().clientHeight / rowHeight())
    const start = +tree.dataset.start, end = start + rows().length
    if (first >= start && (last <= end || end >= +tree.dataset.total)) return
    clearTimeout(timer)
    timer = setTimeout(() => draw({ start: wantedStart(), around: "" }), 40)
  }, { passive: true })
  $("#minimap").addEventListener("pointerdown", (event) => {
    onMap(event)
    const map = $("#minimap")
    map.setPointerCapture(event.pointerId)
    map.onpointermove = onMap
    map.onpointerup = () => { map.onpointermove = null }
  })
}
