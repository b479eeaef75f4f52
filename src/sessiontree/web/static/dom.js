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

export const get = async (url, options = {}) => {
  const answer = await fetch(url, options)
  if (!answer.ok) throw new Error(answer.status === 401 ? "The viewer was restarted: open its new address." : await answer.text())
  return answer.text()
}

export const say = (words) => { $("#say").textContent = words }

/** What this browser remembers about threads that were read: the entry that was last at their end. */
export const remembered = (thread) => JSON.parse(localStorage.getItem(`seen:${thread}`) ?? "null")
export const remember = (thread, value) => {
  try { localStorage.setItem(`seen:${thread}`, JSON.stringify(value)) } catch { localStorage.clear() }
}
