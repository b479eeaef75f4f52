// Questions: a dialog is made for one answer and goes away with it.
const make = (html, className) => {
  const dialog = document.createElement("dialog")
  dialog.className = className
  dialog.innerHTML = html
  document.body.append(dialog)
  const before = document.activeElement
  dialog.addEventListener("close", () => { dialog.remove(); before?.focus?.() })
  dialog.addEventListener("click", (event) => { if (event.target === dialog || event.target.closest("[data-close]")) dialog.close() })
  dialog.showModal()
  return dialog
}

const text = (selector, words, root) => { root.querySelector(selector).textContent = words }

/** Ask for one line of text; resolves to null if there is no answer. */
export const ask = (title, { value = "", hint = "", button = "Save", isDanger = false } = {}) => new Promise((resolve) => {
  const dialog = make(`<form method="dialog" aria-labelledby="dt"><h2 id="dt"></h2><p class="sub"></p>
    <label class="field"><input aria-labelledby="dt"></label>
    <footer><button type="button" class="btn" data-close>Cancel</button><button class="btn ${isDanger ? "danger" : "main"}"></button></footer></form>`, "ask")
  text("h2", title, dialog)
  text("p", hint, dialog)
  text("footer button:last-child", button, dialog)
  const input = dialog.querySelector("input")
  input.value = value
  input.select()
  let answer = null
  dialog.querySelector("form").addEventListener("submit", () => { answer = input.value })
  dialog.addEventListener("close", () => resolve(answer))
})

const planRow = ([kind, words, className = ""]) => {
  const row = document.createElement("div")
  row.className = `row ${className}`
  const what = document.createElement("b")
  what.textContent = kind
  const rest = document.createElement("span")
  rest.textContent = words
  row.append(what, rest)
  return row
}

/** Let the reader leave rows of a plan out: each gets a box, and so do all of them together. */
const choosable = (plan, name, onChange) => {
  const box = (label) => {
    const made = Object.assign(document.createElement("input"), { type: "checkbox", checked: true })
    made.setAttribute("aria-label", label)
    return made
  }
  const boxes = [...plan.children].map((row) => { const made = box(row.textContent); row.prepend(made); return made })
  const all = box(`All ${name}s`), head = planRow([`All ${boxes.length} ${name}s`, ""])
  head.prepend(all)
  if (boxes.length > 1) plan.prepend(head)
  const chosen = () => boxes.flatMap((one, number) => one.checked ? [number] : [])
  plan.addEventListener("change", ({ target }) => {
    if (target === all) for (const one of boxes) one.checked = all.checked
    const count = chosen().length
    all.checked = count > 0
    all.indeterminate = count > 0 && count < boxes.length
    onChange(count)
  })
  plan.addEventListener("click", ({ target }) => { if (target.type !== "checkbox") target.closest(".row")?.querySelector("input").click() })
  return chosen
}

/** Show a plan and ask whether to do it; the way out has the focus.

Resolves to the places of the rows to carry out, or to null. With `unit`, the name of what a row is, rows can be left out. */
export const confirm = (title, rows, { hint = "", button = "Do it", canDo = true, unit = "" } = {}) => new Promise((resolve) => {
  const dialog = make(`<div aria-labelledby="dt"><h2 id="dt"></h2><p class="sub"></p><div class="plan"></div>
    <footer><button type="button" class="btn" data-close autofocus>Cancel <kbd>Esc</kbd></button><button type="button" class="btn main go"></button></footer></div>`, "ask wide-ask")
  text("h2", title, dialog)
  text("p", hint, dialog)
  const plan = dialog.querySelector(".plan")
  plan.append(...rows.map(planRow))
  const go = dialog.querySelector(".go")
  go.innerHTML = "<span></span> <kbd>Ctrl ⏎</kbd>"
  const offer = (count) => {
    text("span", unit ? `${button} ${count} ${count === 1 ? unit : `${unit}s`}` : button, go)
    go.disabled = !canDo || (unit && !count)
  }
  const chosen = unit ? choosable(plan, unit, offer) : () => [...rows.keys()]
  offer(rows.length)
  let answer = null
  const yes = () => { if (!go.disabled) { answer = chosen(); dialog.close() } }
  go.onclick = yes
  dialog.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) yes() })
  dialog.addEventListener("close", () => resolve(answer))
})

export const show = (html, className) => make(html, className)
