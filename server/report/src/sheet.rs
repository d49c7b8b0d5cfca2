//! The style sheet of every page: colours as variables, which follow the reader's system, or the theme of VS Code where
//! its web views show the page.

const LIGHT: &str = "--back:#fff;--text:#1c1f23;--quiet:#5b636d;--line:#d5dae0;--panel:#f5f7f9;--bar:#4477aa;\
    --warning:#9a5b00;--error:#b3261e;--information:#0b5cad;--good:#1d6f38;--poor:#c4540a;--hot:209,73,13;\
    --m:#f6d5d8;--s:#ead3e3;--b:#d3e8d6;--c:#d5e2f2;--o:#eef0f3;--wait:#b3261e;--arc:#6b747f;";
const DARK: &str = "--back:#16191d;--text:#e3e6ea;--quiet:#9aa3ad;--line:#363c44;--panel:#1e2227;--bar:#7aa6d6;\
    --warning:#f0b35a;--error:#ff8a80;--information:#86b8f0;--good:#7fce98;--poor:#f0935a;--hot:240,120,60;\
    --m:#5a2a30;--s:#4c2a45;--b:#23452b;--c:#26405e;--o:#2a2f36;--wait:#ff8a80;--arc:#8a939e;";
/// In a web view the editor's own colours win, as far as its theme has them.
const EDITOR: &str = "--back:var(--vscode-editor-background);--text:var(--vscode-editor-foreground);\
    --quiet:var(--vscode-descriptionForeground);--panel:var(--vscode-textCodeBlock-background);\
    --information:var(--vscode-textLink-foreground);";
const SHEET: &str = "
body{margin:0 auto;max-width:82rem;padding:1.5rem;background:var(--back);color:var(--text);\
font:var(--vscode-font-size,15px)/1.5 var(--vscode-font-family,system-ui,sans-serif)}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1rem}
h3{font-size:1rem;margin:1.5rem 0 .4rem}h4{font-size:.9rem;font-weight:400;margin:.6rem 0 .3rem}
a{color:var(--information)}summary{cursor:pointer;margin-top:1rem}
code{font:max(.87em,12px)/1.4 var(--vscode-editor-font-family,ui-monospace),monospace;background:var(--panel);padding:0 .2em;color:inherit}
.lead{font-size:1.6rem;font-weight:600}
.quiet{color:var(--quiet)}.error{color:var(--error)}.warning{color:var(--warning)}
.information,.hint{color:var(--information)}.good{color:var(--good)}.strong{font-weight:600}
.wide{overflow-x:auto}.best{margin:.3rem 0;padding-left:1.4rem}.best li{overflow-wrap:anywhere}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top;white-space:nowrap}
th{color:var(--quiet);font-weight:400;border-bottom:1px solid var(--line)}
.n{text-align:right}
.models td:last-child{white-space:normal;min-width:14rem;overflow-wrap:anywhere}
.findings td:last-child{white-space:normal;min-width:20rem}
figure{margin:0}figcaption{color:var(--quiet);font-size:.87rem;max-width:60rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));gap:0 2rem}
.three{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(17rem,100%),1fr));gap:0 1rem}
.stack{display:block;width:100%;height:1.6rem;margin-bottom:.5rem}
.bar{display:block;width:12rem;height:.8rem;margin-top:.35rem}
.key{display:inline-block;width:.8rem;height:.8rem;vertical-align:-.1rem}
rect{fill:var(--bar)}rect.target{fill:var(--good)}
.p-compute{fill:#4477aa}.p-memory_bandwidth{fill:#ee6677}.p-memory_latency{fill:#ccbb44}
.p-tensor{fill:#0b7285}.p-async_copy{fill:#ee8866}
.p-shared{fill:#aa3377}.p-divergence{fill:#66ccee}.p-synchronisation{fill:#228833}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.5rem 0}
dt{color:var(--quiet)}dd{margin:0}
.heat{min-width:100%}.heat td{padding:0 .8rem 0 0;line-height:1.45}.heat td:last-child{width:100%}
.heat .bar{width:5rem}.heat code{background:none;white-space:pre;padding:0 .4em}
.h1 code{background:rgba(var(--hot),.1)}.h2 code{background:rgba(var(--hot),.18)}.h3 code{background:rgba(var(--hot),.27)}
.h4 code{background:rgba(var(--hot),.36)}.h5 code{background:rgba(var(--hot),.46)}
rect.heat1{fill:rgba(var(--hot),.35)}rect.heat2{fill:rgba(var(--hot),.5)}rect.heat3{fill:rgba(var(--hot),.65)}\
rect.heat4{fill:rgba(var(--hot),.8)}rect.heat5{fill:rgb(var(--hot))}
.plot{display:block;width:100%;max-width:44rem;font:12px var(--vscode-font-family,system-ui,sans-serif)}
.plot text{fill:var(--text)}.plot .tick,.plot .name{fill:var(--quiet);font-size:11px}.plot .strong{font-weight:600}
.plot .strong,.plot .tick{paint-order:stroke;stroke:var(--back);stroke-width:3px}
.plot .cell{font-size:9.5px}.plot path{fill:none}
.grid{stroke:var(--line);stroke-width:.6}.axis{stroke:var(--quiet)}
.roof{stroke:var(--text);stroke-width:1.6}.roof.second{stroke:var(--quiet)}.curve{stroke:var(--bar);stroke-width:2}
.ideal,.drop{stroke:var(--quiet);stroke-dasharray:4 4}
.point{fill:var(--poor);stroke:var(--back)}.hollow{fill:var(--back);stroke:var(--poor);stroke-width:2}
.lane{fill:var(--c)}.idle,.unit{fill:none;stroke:var(--line)}.poor{fill:var(--poor)}.good-fill{fill:var(--bar)}
.thread{stroke:var(--quiet);stroke-width:.8}
";

/// The whole sheet.
pub(crate) fn text() -> String {
    format!(
        ":root{{color-scheme:light dark;{LIGHT}}}\n\
         @media(prefers-color-scheme:dark){{:root{{{DARK}}}}}\n\
         body.vscode-light,body.vscode-high-contrast-light{{color-scheme:light;{LIGHT}{EDITOR}}}\
         body.vscode-dark,body.vscode-high-contrast:not(.vscode-high-contrast-light){{color-scheme:dark;{DARK}{EDITOR}}}\n\
         {SHEET}{}",
        crate::graph::SHEET
    )
}
