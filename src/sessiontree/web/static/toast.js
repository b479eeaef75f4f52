// What happened, what was kept, and the way back.
import { $, say } from "./dom.js"

let undo = null

export const toast = (words, { back = null, isBad = false } = {}) => {
  undo = back
  const box = document.createElement("div")
  box.className = isBad ? "toast wrong" : "toast"
  box.role = isBad ? "alert" : "status"
  const text = document.createElement("span")
  text.textContent = words
  box.append(text)
  if (back) {
    const button = document.createElement("button")
    button.type = "button"
    button.innerHTML = "Undo <kbd>u</kbd>"
    button.dataset.do = "undo"
    box.append(button)
  }
  $("#toasts").replaceChildren(box)
  say(words)
  let timer = setTimeout(() => box.remove(), 8000)
  box.onmouseenter = () => clearTimeout(timer)
  box.onfocusin = () => clearTimeout(timer)
  box.onmouseleave = () => { timer = setTimeout(() => box.remove(), 3000) }
}

/** The way back from the last action, once; null if there is none. */
export const wayBack = () => {
  const back = undo
  undo = null
  $("#toasts").replaceChildren()
  return back
}
