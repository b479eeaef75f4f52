// The outline beside the transcript: the prompts of the branch, and the files that it changed.
import { $, $$, app, below, element, get } from "./dom.js"

const SOON = 1000
let timer = 0

/** Fill a part of the outline; the answer is for the thread that is shown now, not for the one that is shown when it comes. */
const fill = async (id, path) => {
  const box = $(id)
  box.replaceChildren(element(await get(below(path, { at: app().dataset.at }))))
}

export const showFiles = async () => { if ($("#files")?.checkVisibility()) await fill("#files", "/files") }

/** A prompt came: ask for all of them, but not for each one of many. */
export const promptsChanged = () => {
  timer ||= setTimeout(async () => {
    timer = 0
    if (!$("#prompts")) return
    await fill("#prompts", "/prompts")
    $("#pt").textContent = $$("#prompts a").length
    $(".now").hidden = false
  }, SOON)
}

export const mount = () => { if (app()) showFiles() }
