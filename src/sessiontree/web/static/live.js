// What other processes commit appears here: one stream for each page.
import { $, app, element, get, remember, say } from "./dom.js"
import { promptsChanged, showFiles } from "./outline.js"
import { entries, extend, isAtEnd } from "./transcript.js"
import { toast } from "./toast.js"
import { redraw } from "./tree.js"
import { refresh } from "./visit.js"

let stream = null
let waiting = 0
let lastSaid = 0

const pill = () => {
  const button = $("#pill")
  if (!button) return
  button.hidden = !waiting
  $("span", button).textContent = `${waiting} new ${waiting === 1 ? "entry" : "entries"}`
}

const seen = () => {
  const { thread, leaf, total } = app().dataset
  waiting = 0
  pill()
  remember(thread, { leaf, total: +total, time: Date.now() })
}

const onEntries = (event) => {
  const news = JSON.parse(event.data)
  const { head, at } = app().dataset
  const isHere = app().dataset.leaf === head || !at
  app().dataset.head = news.leaf
  if (!isHere) return redraw()
  app().dataset.leaf = news.leaf
  const { fresh, wasAtEnd } = extend(news)
  $("#count").textContent = news.count
  if (wasAtEnd && !document.hidden) seen()
  else { waiting += Math.max(0, fresh); pill() }
  redraw()
  if (news.html.includes('class="e prompt"')) promptsChanged()
  if (Date.now() - lastSaid > 10_000 && fresh > 0) { lastSaid = Date.now(); say(`${fresh} new entries`) }
}

const onState = (event) => {
  const news = JSON.parse(event.data)
  const was = app().dataset.live
  if (news.holder) app().dataset.live = news.holder
  else delete app().dataset.live
  if ($("#lease")) $("#lease").replaceChildren(element(news.lease))
  if (news.title && $("#title")) $("#title").textContent = news.title
  if (was && !news.holder) { say("turn finished"); showFiles() }
}

const onMoved = () => {
  const here = $("#pages .e.sel") ?? entries()[0], y = here?.getBoundingClientRect().top ?? null
  if (!app().dataset.at) refresh(app().dataset.url, y)
  else redraw()
}

const onGone = () => {
  stream.close()
  const chip = Object.assign(document.createElement("span"), { className: "chip", textContent: "deleted" })
  $("#lease").replaceChildren(chip)
  toast("This thread was deleted; what is on the screen is all that is left of it.", { isBad: true })
}

const onThreads = async () => {
  const list = $("#threads")
  const isBusy = () => list.scrollTop > 40 || $("#filter")?.value
  if (!list || isBusy()) return
  const made = element(await get(`/threads${location.pathname === "/" ? location.search : ""}`))
  if ($(".cards") && made.querySelector(".th")) return location.reload() // the store was empty
  const current = app()?.dataset.thread
  for (const one of made.querySelectorAll(".th")) if (one.dataset.thread === current) one.setAttribute("aria-current", "true")
  if (!isBusy()) list.replaceChildren(made)
}

/** A hidden page has no stream: browsers open six connections to a server at most. What it missed comes when it is seen. */
const connect = () => {
  stream?.close()
  stream = null
  if (document.hidden) return
  const url = app() ? `${app().dataset.url}/live?after=${encodeURIComponent(app().dataset.head ?? "")}` : "/live"
  stream = new EventSource(url)
  if ($(".cards")) stream.onopen = onThreads // the first entry may have come before the stream
  stream.addEventListener("entries", onEntries)
  stream.addEventListener("state", onState)
  stream.addEventListener("moved", onMoved)
  stream.addEventListener("gone", onGone)
  stream.addEventListener("threads", onThreads)
}

export const mount = () => {
  waiting = 0
  connect()
  $("#content")?.addEventListener("scroll", () => { if (waiting && isAtEnd()) seen() }, { passive: true })
}

addEventListener("pagehide", () => stream?.close())
addEventListener("pageshow", (event) => { if (event.persisted) connect() })
document.addEventListener("visibilitychange", () => {
  connect()
  if (!document.hidden) onThreads()
})
setInterval(() => {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    const seconds = (clock.dataset.clock = +clock.dataset.clock + 1)
    clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`
  }
}, 1000)
