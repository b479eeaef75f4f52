// The palette: threads, messages and actions by a few letters of them.
import { act, isAllowed } from "./actions.js"
import { COMMANDS } from "./commands.js"
import { show } from "./dialogs.js"
import { $, $$, app, json } from "./dom.js"
import { visit } from "./visit.js"

const escape = (words) => { const span = document.createElement("span"); span.textContent = words; return span.innerHTML }

const matchesAll = (words, text) => words.every((word) => text.toLowerCase().includes(word))

const commands = (query, run) => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return COMMANDS.filter(([group, , name, about]) => matchesAll(words, `${group} ${about} ${name}`) && isAllowed(name))
    .map(([group, key, name, about, sign]) => ({ group, icon: sign, name: about[0].toUpperCase() + about.slice(1), key, run: () => run(name) }))
}

const marked = ({ text, marks = [] }) => {
  let at = 0, out = ""
  for (const [start, end] of marks) { out += `${escape([...text].slice(at, start).join(""))}<mark>${escape([...text].slice(start, end).join(""))}</mark>`; at = end }
  return out + escape([...text].slice(at).join(""))
}

export const palette = ({ query = "", options = null, title = "Search or act" } = {}) => {
  if ($("dialog.pal[open]")) return
  const dialog = show(`<div class="q"><i class="i i-search"></i><input role="combobox" aria-expanded="true" aria-controls="opts" aria-autocomplete="list" autocomplete="off"><kbd>Esc</kbd></div>
    <ul id="opts" role="listbox"></ul><footer class="wide"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>⏎</kbd> run</span><span class="grow"></span><span><kbd>&gt;</kbd> actions</span></footer>`, "pal")
  const input = $("input", dialog), list = $("#opts", dialog)
  input.setAttribute("aria-label", title)
  list.setAttribute("aria-label", title)
  input.placeholder = title
  input.value = query
  let shown = [], at = 0, asked = null

  const choose = (next) => {
    at = Math.max(0, Math.min(shown.length - 1, next))
    $$("[role=option]", list).forEach((one, number) => one.setAttribute("aria-selected", number === at))
    const row = $("[aria-selected=true]", list)
    row?.scrollIntoView({ block: "nearest" })
    if (row) input.setAttribute("aria-activedescendant", row.id)
  }
  const draw = (found, chosen = 0) => {
    shown = found
    let group = ""
    list.innerHTML = found.map((one, number) => {
      const head = one.group && one.group !== group ? `<li class="h" role="presentation">${escape(one.group)}</li>` : ""
      group = one.group ?? ""
      const name = one.html ? `<span class="cut grow">${one.html}</span>` : `<b class="cut">${escape(one.name)}</b><span class="dim cut grow">${escape(one.about ?? "")}</span>`
      return `${head}<li role="option" id="o${number}" data-n="${number}"><i class="i i-${one.icon}"></i>${name}${one.right ? `<span class="dim cut rt">${escape(one.right)}</span>` : ""}${one.key ? `<kbd>${escape(one.key)}</kbd>` : ""}</li>`
    }).join("")
    choose(chosen)
  }
  const go = (url) => { app() ? visit(url) : (location.href = url) }

  const find = async () => {
    const words = input.value.trim()
    asked?.abort()
    asked = new AbortController()
    const { signal } = asked
    if (options) return draw(options.filter((one) => matchesAll([words.toLowerCase()], `${one.name} ${one.about}`)))
    if (words.startsWith(">")) return draw(commands(words.slice(1), act))
    const own = words ? commands(words, act).slice(0, 5) : commands("", act).filter((one) => one.group === "Do").slice(0, 6)
    draw(own)
    try {
      const ask = (path, params) => json(`${path}?${new URLSearchParams(params)}`, { signal })
      const [threads, hits] = await Promise.all([ask("/threads.json", { find: words }), words ? ask("/search.json", { q: words, limit: 8 }) : { hits: [] }])
      const segment = (id) => encodeURIComponent(id.replace(/[~/.]/g, (sign) => ({ "~": "~0", "/": "~1", ".": "~2" })[sign]))
      draw([
        ...own,
        ...(threads.rows ?? []).slice(0, 6).map((one) => ({ group: "Threads", icon: "tree", name: one.title, about: one.folder ?? "", right: one.source ? "fork" : "", run: () => go(`/t/${segment(one.id)}`) })),
        ...(hits.hits ?? []).map((one) => ({ group: "In messages", icon: "answer", html: marked(one.snippet), right: (one.title ?? ""), run: () => go(`/t/${segment(one.thread_id)}?at=${encodeURIComponent(one.entry.id)}`) })),
        ...(words ? [{ group: "In messages", icon: "search", name: `Search everything for “${words}”`, run: () => { location.href = `/search?${new URLSearchParams({ q: words })}` } }] : []),
      ], at)
    } catch (error) { if (error.name !== "AbortError") throw error }
  }
  const run = (option) => { if (option && dialog.open) { dialog.close(); option.run() } }
  let timer = 0, answer = null
  const ask = () => { clearTimeout(timer); timer = 0; answer = find(); return answer }
  const settled = () => timer ? ask() : answer
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 60) })
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); choose(at + 1) }
    else if (event.key === "ArrowUp") { event.preventDefault(); choose(at - 1) }
    else if (event.key === "Enter") { event.preventDefault(); settled().then(() => run(shown[at])) }
  })
  list.addEventListener("click", (event) => run(shown[event.target.closest("[role=option]")?.dataset.n]))
  input.focus()
  ask()
}
