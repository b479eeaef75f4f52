// What buttons, keys and the palette do. Writes say what happened and can be taken back, or ask first.
import { ask, confirm } from "./dialogs.js"
import { $, $$, app, below, column, element, get, json, request } from "./dom.js"
import { help } from "./help.js"
import { palette } from "./palette.js"
import { toast, wayBack } from "./toast.js"
import { entries, go, jump, select, selected, step, total } from "./transcript.js"
import { filter, foldAll, toggle } from "./tree.js"
import { refresh, visit } from "./visit.js"

const post = async (path, body = {}) => {
  const answer = await request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
  const found = await answer.json().catch(() => ({ title: "The server did not answer." }))
  if (!answer.ok) throw new Error(found.title)
  return found
}

/** Run work after the work that was begun before it, so that quick keys mean what they say. */
const lane = () => {
  let last = Promise.resolve()
  return (work) => (last = last.then(work).catch((error) => toast(error.message, { isBad: true })))
}
const writing = lane(), moving = lane()

/** Do a write, say what happened, and offer the way back. */
const carryOut = async (path, body = {}) => {
  const done = await post(path, body)
  const back = done.undo ? () => carryOut(done.undo.path, done.undo.body) : null
  toast(done.said, { back })
  if (done.go) await visit(done.go)
  else if (app()) await refresh(location.href, selected()?.getBoundingClientRect().top ?? null)
}
const write = (path, body) => writing(() => carryOut(path, body))

const here = () => selected() ?? entries().at(-1)
const entry = () => here()?.dataset.id
const onThread = (path, body) => app() && write(below(path), body)

const theme = () => {
  const root = document.documentElement
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches
  const next = (root.dataset.theme ?? (isDark ? "dark" : "light")) === "dark" ? "light" : "dark"
  root.dataset.theme = next
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`
}

const thread = async () => (await json(below(".json"))).thread

const label = async () => {
  const name = await ask("Label this entry", { hint: "A name to find it again. An empty one removes the label.", value: $(".marks .chip", here())?.textContent ?? "" })
  if (name !== null) onThread("/label", { entry: entry(), name })
}
const rename = async () => {
  const title = await ask("Rename the thread", { value: app().dataset.title, button: "Rename" })
  if (title !== null) onThread("/rename", { title })
}
const tags = async () => {
  const now = (await thread()).tags ?? []
  const words = await ask("Tags of the thread", { value: now.join(", "), hint: "Separated by commas.", button: "Save" })
  if (words !== null) onThread("/tags", { tags: words.split(",").map((one) => one.trim()).filter(Boolean) })
}
const star = () => writing(async () => {
  const now = (await thread()).tags ?? []
  await carryOut(below("/tags"), { tags: now.includes("starred") ? now.filter((one) => one !== "starred") : [...now, "starred"] })
})
const archive = () => writing(async () => carryOut(below("/archive"), { is_archived: !(await thread()).is_archived }))
const undo = () => writing(() => {
  const back = wayBack()
  return back ? back() : app() && carryOut(below("/undo"))
})

const compact = async () => {
  try {
    const { said, result } = await post(below("/compact"), { is_preview: true })
    const canDo = result.status === "planned"
    const rows = canDo
      ? [["becomes a summary", `${result.removed_messages} messages`], ["stays", `${result.kept_messages ?? 0} messages, ${result.kept_users ?? 0} of your prompts`], ["context", `${result.tokens_before} → ${result.tokens_after} tokens`], ["summary", (result.summary ?? "").slice(0, 600)]]
      : []
    if (await confirm("Compact the conversation", rows, { hint: canDo ? "Nothing is changed yet, and no entry will be deleted." : said, button: "Compact", canDo })) onThread("/compact", { is_preview: false })
  } catch (error) { toast(error.message, { isBad: true }) }
}

/** The chosen ones of some paths, without folders that hold one which was left out: a folder stands for all that is in it. */
const wanted = (paths, chosen) => {
  const rest = paths.filter((_, number) => !chosen.has(number))
  return paths.filter((path, number) => chosen.has(number) && !rest.some((one) => one.startsWith(`${path}/`)))
}

const restore = async (button) => {
  const id = button?.closest?.(".e")?.dataset.id ?? entries().findLast((one) => one.getAttribute("aria-label") === "Checkpoint" && +one.dataset.at <= +(here()?.dataset.at ?? 1e12))?.dataset.id
  if (!id) return toast("There is no checkpoint before this entry.", { isBad: true })
  try {
    const { plan } = await post(below("/restore"), { entry: id })
    const clashes = new Map((plan.conflicts ?? []).map((one) => [one.path, one.reason]))
    const steps = plan.steps ?? []
    const rows = steps.map((one) => clashes.has(one.path) ? ["conflict", `${one.path}, ${clashes.get(one.path)} since; your version is kept in the checkpoint before`, "live"] : [one.kind, one.path])
    const canDo = rows.length > 0
    const hint = canDo ? `Nothing is written yet. This is what would change in ${plan.root}. A checkpoint of it is taken first.` : `${plan.root} is already as it was.`
    const chosen = await confirm("Restore files", rows, { hint, button: "Restore", canDo, unit: "file" })
    if (!chosen) return
    const paths = chosen.length < steps.length ? wanted(steps.map((one) => one.path), new Set(chosen)) : undefined
    write(below("/restore"), { entry: id, is_confirmed: true, conflicts: clashes.size ? "force" : "stop", paths })
  } catch (error) { toast(error.message, { isBad: true }) }
}

const erase = async () => {
  const target = here()
  if (!target) return
  const calls = $$(".call", target).length
  const title = await ask("Erase this entry for good", { hint: `The entry${calls ? ` and the results of its ${calls} calls` : ""} will be gone from the store, in every thread that shows it. This cannot be undone. Type the title of the thread to erase: ${app().dataset.title}`, button: "Erase", isDanger: true })
  if (title !== null) onThread("/erase", { entry: target.dataset.id, title })
}

const save = async () => {
  const rows = [["h", "html", "one page, without scripts"], ["m", "markdown", "the branch as text"], ["j", "json", "everything, for import"], ["l", "jsonl", "the same, a line each"]]
  palette({ title: "Export as", options: rows.map(([, name, about]) => ({ icon: "export", name, about, run: () => { location.href = below("/export", { format: name, entry: name === "markdown" && app().dataset.at ? app().dataset.leaf : undefined }) } })) })
}

const whole = async (button) => {
  const article = button.closest(".e")
  const made = element(await get(below(`/e/${article.id.slice(2)}`))).querySelector(".e")
  made.dataset.at = article.dataset.at
  const y = article.getBoundingClientRect().top
  article.replaceWith(made)
  column().scrollTop += made.getBoundingClientRect().top - y
  select(made, { block: null })
}

const copy = async (words, said) => {
  await navigator.clipboard.writeText(words)
  toast(said)
}
const compare = () => {
  const { thread, leaf, head } = app().dataset
  location.href = `/compare?${new URLSearchParams(leaf === head ? { a: thread } : { a: thread, b: thread, b_at: leaf })}`
}
const sibling = (by) => {
  const arrows = here()?.querySelector(".sib a[href]") ? here() : $(".crumbs")
  const links = $$(".sib", arrows).at(-1)
  const arrow = links?.[by < 0 ? "firstElementChild" : "lastElementChild"]
  if (arrow?.href) arrow.click()
}
const neighbour = (by) => {
  const all = $$("#threads .th"), at = all.findIndex((one) => one.hasAttribute("aria-current"))
  const next = all[at + by]
  if (next) { next.scrollIntoView({ block: "nearest" }); app() ? visit(next.href) : next.click() }
}
const parent = () => {
  const last = $$(".crumbs a[href*='at=']").filter((one) => !one.closest(".sib")).at(-1)
  last?.click()
}
const pane = (selector) => {
  if (selector === ".threads" && innerWidth < 1080) return document.body.toggleAttribute("data-drawer")
  $(selector)?.toggleAttribute("hidden")
  document.body.toggleAttribute(`data-no-${selector === ".threads" ? "threads" : "tree"}`)
}
const fold = () => {
  if (document.activeElement?.closest("#tree")) return toggle()
  const all = $$("details", here() ?? document.createElement("i")), isOpen = all.some((one) => one.open)
  for (const one of all) one.open = !isOpen
}
const end = () => app().dataset.leaf === app().dataset.head ? go(total() - 1) : visit(app().dataset.url)

export const actions = {
  theme, help, label, rename, tags, star, archive, compact, restore, erase, whole, compare, fold, parent,
  export: save,
  palette: () => palette(),
  "palette-actions": () => palette({ query: ">" }),
  undo,
  fork: () => onThread("/fork", { entry: entry() }),
  rewind: () => onThread("/rewind", { entry: entry() }),
  redo: () => onThread("/redo"),
  uncompact: () => onThread("/uncompact"),
  next: () => moving(() => step(1)),
  previous: () => moving(() => step(-1)),
  "prompt-after": () => moving(() => jump("prompt", 1)),
  "prompt-before": () => moving(() => jump("prompt", -1)),
  "failure-after": () => moving(() => jump("failure", 1)),
  "failure-before": () => moving(() => jump("failure", -1)),
  "branch-before": () => sibling(-1),
  "branch-after": () => sibling(1),
  "thread-before": () => neighbour(-1),
  "thread-after": () => neighbour(1),
  start: () => moving(() => go(0)),
  head: () => moving(end),
  "first-new": () => { const first = $(".newline")?.nextElementSibling; if (first) select(first, { block: "start" }) },
  "fold-all": () => foldAll(),
  filter: () => filter(),
  tree: () => pane(".treepane"),
  threads: () => pane(".threads"),
  find: () => { ($("#filter") ?? $("#q") ?? $(".find input"))?.focus() },
  link: () => copy(location.href, "The link is copied."),
  markdown: async () => copy($(".md", here())?.innerText ?? here()?.innerText ?? "", "The text is copied."),
  resume: () => copy(`sessiontree continue ${app().dataset.thread}`, "The command is copied."),
  context: () => { open(below("/context", { at: entry() }), "_self") },
}

const EVERYWHERE = new Set(["theme", "help", "find", "palette", "palette-actions", "threads", "thread-before", "thread-after", "undo"])
const WRITES = new Set(["label", "rename", "tags", "star", "archive", "compact", "uncompact", "restore", "erase", "fork", "rewind", "undo", "redo"])
export const isAllowed = (name) => (app() || EVERYWHERE.has(name)) && !(WRITES.has(name) && document.body.hasAttribute("data-read-only"))

export const act = (name, button) => {
  if (isAllowed(name)) return actions[name]?.(button)
}
