"""The style sheet of a page, and the policy that allows it and nothing else."""

import base64
import hashlib

__all__ = ["POLICY", "STYLE"]


STYLE = """
:root { color-scheme: light dark; --bg: #fff; --pane: #f7f7f8; --code: #f6f6f8; --line: #e5e5e9; --edge: #cfcfd6;
  --fg: #19191d; --fg2: #4e4e59; --fg3: #686874; --acc: #4a43cf; --acc-bg: #eeedfd; --bad: #c0262d; --bad-bg: #fdeeee;
  --add: #e6f6ec; --del: #fdeceb; --k: #8a2a9b; --s: #17704a; --m: #8a5300; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #121215; --pane: #17171b; --code: #19191d; --line: #2a2a31; --edge: #3d3d47; --fg: #ececef; --fg2: #b0b0bb;
    --fg3: #8f8f9c; --acc: #a5a1ff; --acc-bg: #25243f; --bad: #ff8a8d; --bad-bg: #351a1d; --add: #12291d; --del: #331a1c;
    --k: #d7a1ee; --s: #86d3a6; --m: #eebb74; } }
body { font: 15px/1.6 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 2rem 1rem 4rem; color: var(--fg);
  background: var(--bg); overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .25rem; }
main h1 { font-size: 1.2rem; } main h2, main h3 { font-size: 1.05rem; }
a { color: var(--acc); }
header p, .facts, time, .id { color: var(--fg3); font-size: .8rem; font-weight: normal; margin: .25rem 0; }
.id { font-family: ui-monospace, monospace; text-decoration: none; }
nav { background: var(--pane); border: 1px solid var(--line); border-radius: 10px; padding: .25rem 1rem; margin: 1rem 0 2rem; }
nav h2 { font-size: .85rem; margin: .5rem 0 .25rem; color: var(--fg2); }
nav ol, nav ul { margin: .25rem 0 .5rem; padding-left: 1.75rem; font-size: .9rem; } nav a { text-decoration: none; }
article { margin: 1rem 0; }
article.user { background: var(--pane); border: 1px solid var(--line); border-left: 3px solid var(--acc); border-radius: 10px;
  padding: .5rem 1rem; margin-top: 2rem; }
article > h2 { font-size: .8rem; font-weight: 600; color: var(--fg2); margin: 0 0 .25rem; }
article.user > h2 { color: var(--acc); }
article.assistant > h2, article.tool > h2 { float: right; margin: .15rem 0 0 1rem; font-weight: normal; color: var(--fg3); }
article.assistant, article.tool { margin: .5rem 0; } article::after { content: ""; display: block; clear: both; }
article.failure { background: var(--bad-bg); border-left: 3px solid var(--bad); padding: .25rem 1rem; }
article.failure > h2, .failed .kind, .failed .outcome { color: var(--bad); }
article.note { border: 1px dashed var(--edge); border-radius: 10px; padding: .25rem 1rem; color: var(--fg2); }
.label { background: var(--acc-bg); color: var(--acc); border-radius: 6px; padding: 0 .4rem; }
.facts .bad { color: var(--bad); }
details.call { clear: right; } details.call > summary { display: flex; gap: .6rem; align-items: baseline; font: .85rem/1.9 ui-monospace, monospace; }
details.call > summary::before { content: "▸"; color: var(--fg3); } details.call[open] > summary::before { content: "▾"; }
.kind { min-width: 3.2rem; color: var(--acc); } .object { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.outcome { color: var(--fg3); } .call time { min-width: 3rem; text-align: right; }
@media (max-width: 40rem) { .call time, article time { display: none; } }
details.call { border-left: 2px solid var(--line); padding-left: .6rem; } details.failed { border-color: var(--bad); }
pre { background: var(--code); border-radius: 6px; padding: .6rem .75rem; overflow: auto; max-height: 30rem;
  font: .8rem/1.5 ui-monospace, monospace; white-space: pre-wrap; margin: .4rem 0; }
pre.bad { background: var(--bad-bg); color: var(--bad); }
code { background: var(--code); border-radius: 4px; padding: .1em .25em; font-size: .9em; } pre code { background: none; padding: 0; }
.k { color: var(--k); } .s { color: var(--s); } .m { color: var(--m); } .c { color: var(--fg3); }
.add { background: var(--add); display: block; } .del { background: var(--del); display: block; }
.same { display: block; color: var(--fg3); } .at { color: var(--fg3); display: block; }
blockquote { border-left: 3px solid var(--line); color: var(--fg2); margin: .5rem 0; padding-left: .75rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; } th { background: var(--pane); }
details { margin: .3rem 0; } summary { cursor: pointer; color: var(--fg2); }
details.branch { border: 1px dashed var(--edge); border-radius: 10px; padding: .25rem .9rem; margin: .75rem 0; }
img { max-width: 100%; }
@media print { details:not([open]) > *:not(summary) { display: block; } nav { display: none; } }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""The content security policy: nothing but the style sheet, allowed by its hash, and inline images."""
