// Small helpers that every module uses.
export const $ = (selector, root = document) => root.querySelector(selector)
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
export const app = () => $(".app[data-thread]")
export const column = () => $("#content.col")
export const isPhone = () => innerWidth < 720

/** The address of something below the thread that is shown. */
export const below = (path, params = {}) => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") query.append(name, one)
  }
  return `${app().dataset.url}${path}${query.size ? `?${query}` : ""}`
}

export const element = (html) => {
  const holder = document.createElement("template")
  holder.innerHTML = html // the server's own markup: it escapes all text
  return holder.content
}

/** The server is not there; what is told to the reader instead of an error of the browser. */
export class NoAnswer extends Error {
  constructor() { super("The viewer does not answer: is it still running?") }
}

/** Ask the server; every request of the page goes through here. */
export const request = async (url, options = {}) => {
  try { return await fetch(url, options) } catch (error) { throw error.name === "AbortError" ? error : new NoAnswer() }
}

const answered = async (url, options) => {
  const answer = await request(url, options)
  if (!answer.ok) throw new Error(answer.status === 401 ? "The viewer was restarted: open its new address." : await answer.text())
  return answer
}
export const get = async (url, options = {}) => (await answered(url, options)).text()
export const json = async (url, options = {}) => (await answered(url, options)).json()

export const say = (words) => { $("#say").textContent = words }

/** What this browser remembers about threads that were read: the entry that was last at their end. */
export const remembered = (thread) => JSON.parse(localStorage.getItem(`seen:${thread}`) ?? "null")
export const remember = (thread, value) => {
  try { localStorage.setItem(`seen:${thread}`, JSON.stringify(value)) } catch { localStorage.clear() }
}
