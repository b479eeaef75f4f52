// What must move. Everything else is plain HTML from the server.
const theme = () => {
  const root = document.documentElement
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches
  const next = (root.dataset.theme ?? (isDark ? "dark" : "light")) === "dark" ? "light" : "dark"
  root.dataset.theme = next
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-do=theme]")) theme()
})
