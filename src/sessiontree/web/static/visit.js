// Going to another thread or branch without losing the frame: the server's page is fetched and its panes are put in.
import { $, app, element, get, isPhone } from "./dom.js"
import { mount as mountLive } from "./live.js"
import { mount as mountTranscript } from "./transcript.js"
import { mount as mountTree } from "./tree.js"

export const mountAll = () => {
  mountTree()
  mountTranscript()
  mountLive()
}

/** Show an address. `keep` is an entry that stays at its height on the screen: a branch point. */
export const visit = async (url, { push = true, y = null } = {}) => {
  let html
  try { html = await get(url) } catch { location.href = url; return }
  const page = new DOMParser().parseFromString(html, "text/html")
  const next = page.querySelector(".app"), now = $(".app")
  if (!next || !now || !next.dataset.thread) { location.href = url; return }
  const scrolled = $("#threads")?.scrollTop ?? 0
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
}

addEventListener("popstate", () => {
  if (location.pathname.startsWith("/t/")) visit(location.href, { push: false })
  else location.reload()
})
