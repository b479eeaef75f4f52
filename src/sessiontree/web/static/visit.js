// Going to another thread or branch without losing the frame: the server's page is fetched and its panes are put in.
import { $, $$, app, element, get, isPhone } from "./dom.js"
import { mount as mountLive } from "./live.js"
import { mount as mountOutline } from "./outline.js"
import { mount as mountPanes } from "./panes.js"
import { mount as mountTranscript } from "./transcript.js"
import { mount as mountTree } from "./tree.js"

export const mountAll = () => {
  mountPanes()
  mountTree()
  mountTranscript()
  mountOutline()
  mountLive()
}

/** What the reader looks for stays, and the list of what was found. */
const keepThreads = (next) => {
  const list = $(".threads")
  for (const one of $$(".th", list)) {
    if (one.dataset.thread === next.dataset.thread) one.setAttribute("aria-current", "true")
    else one.removeAttribute("aria-current")
  }
  $(".threads", next).replaceWith(list)
}

let last = 0, running = 0

/** Show an address; the last one that was asked for wins. `y` is the height on the screen where the selected entry stays. */
export const visit = async (url, { push = true, y = null } = {}) => {
  const number = ++last
  running++
  let html
  try { html = await get(url) } catch { if (number === last) location.href = url; return } finally { running-- }
  if (number !== last) return
  const page = new DOMParser().parseFromString(html, "text/html")
  const next = page.querySelector(".app"), now = $(".app")
  if (!next || !now || !next.dataset.thread) { location.href = url; return }
  const scrolled = $("#threads")?.scrollTop ?? 0, focused = document.activeElement
  if ($("#filter")?.value) keepThreads(next)
  document.title = page.title
  if (push) history.pushState({ ours: true }, "", url)
  now.replaceWith(next)
  document.body.dataset.view = isPhone() ? "transcript" : page.body.dataset.view
  if ($("#threads")) $("#threads").scrollTop = scrolled
  mountAll()
  if (y !== null) {
    const target = $("#pages .e.sel"), col = $("#content")
    if (target) col.scrollTop += target.getBoundingClientRect().top - y
  }
  const rest = focused !== document.body && focused?.isConnected ? focused : $("#pages .e.sel") ?? $("#content")
  rest?.focus({ preventScroll: true })
}

/** Show an address again because it changed, unless the reader is on the way elsewhere: that page will be new anyway. */
export const refresh = (url, y = null) => running ? undefined : visit(url, { push: false, y })

addEventListener("popstate", () => {
  if (location.pathname.startsWith("/t/")) visit(location.href, { push: false })
  else location.reload()
})
