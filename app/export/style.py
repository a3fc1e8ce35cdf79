"""The style sheet of an exported page; it has no `<`, so nothing in it needs escaping."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c1c; --quiet: #666; --line: #ddd;
  --good: #1a7f37; --bad: #a40e26; --busy: #9a6700; --tint: #f4f4f2; }
@media (prefers-color-scheme: dark) { :root { --paper: #161616; --ink: #e4e4e4; --quiet: #999;
  --line: #333; --good: #57ab5a; --bad: #e5534b; --busy: #c69026; --tint: #1f1f1f; } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
section { margin: 1rem 0; padding: .8rem 1rem; border-radius: .4rem; }
section.user { background: var(--tint); } section.assistant { border: 1px solid var(--line); }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); font-size: .875rem; margin: .3rem 0; }
.tree { margin-top: .8rem; font-size: .9rem; }
details details { margin-left: .6rem; padding-left: .6rem; border-left: 1px solid var(--line); }
summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
pre { margin: .3rem 0; padding: .5rem; background: var(--tint); font: .85rem/1.4 monospace; }
.bar { display: inline-block; width: 4rem; height: .6rem; border: 1px solid var(--line); }
.bar span { display: block; height: 100%; background: var(--quiet); }
.score { font-family: monospace; }
.pruned { color: var(--quiet); } .pruned > summary > span:first-child { color: var(--bad); }
.kept > summary > span:first-child, .completed > summary > span:first-child {
  color: var(--good); }
.answer > summary { color: var(--good); font-weight: bold; }
"""
