"""The style sheet, and the policy that allows it and nothing else."""

from __future__ import annotations

import base64
import hashlib

__all__ = ["POLICY", "STYLE"]

STYLE = """
:root { color-scheme: light dark; --line: #d5d8dd; --dim: #667; --user: #0b6bcb; --assistant: #1a7f37;
  --tool: #8250df; --bad: #b42318; --panel: #f6f7f9; --add: #e6f6ea; --del: #fdeceb; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a3f47; --dim: #9aa3ad; --user: #6cb6ff; --assistant: #6bc46d; --tool: #c297ff;
    --bad: #ff938a; --panel: #22262c; --add: #12301b; --del: #3b1715; } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
header p, time, .id { color: var(--dim); font-size: .85rem; font-weight: normal; }
article { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.25rem 0; overflow-wrap: anywhere; }
article > h2 { font-size: .9rem; margin: 0 0 .25rem; }
article.user { border-color: var(--user); } article.user > h2 { color: var(--user); }
article.assistant { border-color: var(--assistant); } article.assistant > h2 { color: var(--assistant); }
article.tool { border-color: var(--tool); } article.tool > h2 { color: var(--tool); }
article.failure { border-color: var(--bad); } article.failure > h2 { color: var(--bad); }
.label { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: 0 .4rem; }
pre { background: var(--panel); border-radius: .4rem; padding: .75rem; overflow: auto; max-height: 40rem; font-size: .85rem;
  white-space: pre-wrap; }
code { background: var(--panel); border-radius: .25rem; padding: .1em .25em; } pre code { background: none; padding: 0; }
blockquote { border-left: 3px solid var(--line); color: var(--dim); margin: .5rem 0; padding-left: .75rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; } th { background: var(--panel); }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--dim); overflow-wrap: anywhere; }
details.branch { border: 1px dashed var(--line); padding: .25rem .75rem; }
.add { background: var(--add); display: block; } .del { background: var(--del); display: block; }
.at { color: var(--dim); display: block; }
img { max-width: 100%; }
@media print { details:not([open]) > *:not(summary) { display: block; } }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"
"""No script, no frame, no font, no request; the one style sheet by its hash, images only from inside the file."""
