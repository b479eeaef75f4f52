// The outline beside the transcript: the prompts of the branch, and the files that it changed.
import { $, app, below, element, get } from "./dom.js"

const SOON = 1000
let timer = 0

/** Fill a part of the outline; the answer is for the thread that is shown now, not for the one that is shown when it comes. */
const fill = async (id, path) => {
  const box = $(id)
  box.replaceChildren(element(await get(below(path, { at: app().dataset.at }))))
}

export const showFiles = async () => { if ($("#files")?.checkVisibility()) await fill("#files", "/files") }

const showPrompts = async () => {
  await fill("#prompts", "/prompts")
  const first = $("#prompts [data-total]")
  $(".now").hidden = !first
  $("#pt").textContent = first?.dataset.total ?? 0
}

/** A prompt came: ask for all of them, but not for each one of many. */
export const promptsChanged = () => {
  timer ||= setTimeout(() => {
    timer = 0
    if ($("#prompts")) showPrompts()
  }, SOON)
}

/** A long thread is shown before its prompts are known. */
export const mount = () => {
  if (!app()) return
  showFiles()
  if (!$("#tree .tree") && +app().dataset.total) showPrompts()
}
