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

/** Show a plan and ask whether to do it; the way out has the focus. */
export const confirm = (title, rows, { hint = "", button = "Do it", canDo = true } = {}) => new Promise((resolve) => {
  const dialog = make(`<div aria-labelledby="dt"><h2 id="dt"></h2><p class="sub"></p><div class="plan"></div>
    <footer><button type="button" class="btn" data-close autofocus>Cancel <kbd>Esc</kbd></button><button type="button" class="btn main go"></button></footer></div>`, "ask wide-ask")
  text("h2", title, dialog)
  text("p", hint, dialog)
  const plan = dialog.querySelector(".plan")
  for (const [kind, words, className = ""] of rows) {
    const row = document.createElement("div")
    row.className = `row ${className}`
    const what = document.createElement("b")
    what.textContent = kind
    const rest = document.createElement("span")
    rest.textContent = words
    row.append(what, rest)
    plan.append(row)
  }
  const go = dialog.querySelector(".go")
  go.innerHTML = "<span></span> <kbd>Ctrl ⏎</kbd>"
  text("span", button, go)
  go.disabled = !canDo
  let answer = false
  const yes = () => { if (canDo) { answer = true; dialog.close() } }
  go.onclick = yes
  dialog.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) yes() })
  dialog.addEventListener("close", () => resolve(answer))
})

export const show = (html, className) => make(html, className)
