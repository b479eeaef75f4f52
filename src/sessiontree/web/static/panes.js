// The widths of the panes: dragged at their edge or moved with the arrow keys, and kept in this browser.
import { $$ } from "./dom.js"

const LEAST = 180, MOST = 640, STEP = 16
const root = document.documentElement

const resize = (name, width) => {
  const kept = Math.round(Math.max(LEAST, Math.min(MOST, width)))
  root.style.setProperty(`--my-${name}`, `${kept}px`)
  for (const grip of $$(`[data-grip=${name}]`)) grip.setAttribute("aria-valuenow", kept)
  localStorage.setItem(`width:${name}`, kept)
}
const paneOf = (grip) => grip.parentElement.getBoundingClientRect()

export const mount = () => {
  for (const grip of $$("[data-grip]")) {
    const kept = +localStorage.getItem(`width:${grip.dataset.grip}`)
    if (kept) resize(grip.dataset.grip, kept)
  }
}

document.addEventListener("pointerdown", (event) => {
  const grip = event.target.closest?.("[data-grip]")
  if (!grip) return
  event.preventDefault()
  grip.focus()
  grip.setPointerCapture(event.pointerId)
  grip.onpointermove = ({ clientX }) => resize(grip.dataset.grip, clientX - paneOf(grip).left)
  grip.onpointerup = grip.onpointercancel = () => { grip.onpointermove = null }
})
document.addEventListener("keydown", (event) => {
  const grip = event.target.closest?.("[data-grip]"), by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key]
  if (!grip || !by) return
  event.preventDefault()
  resize(grip.dataset.grip, paneOf(grip).width + by)
})
