//! The work flow graph as a picture: SVG that needs nothing but itself, light or dark as the reader's system is.

use std::fmt::Write as _;

use warplens_db::WorkFlow;
use warplens_models::wfg::drawing::{Arc, Drawing, DrawnNode, Relation, Role};

use crate::escape::escape;
use crate::figure::{extents, number, percent};

const ROW: usize = 44;
const TOP: usize = 96;
const BOX: (usize, usize) = (300, 26);
const LEFT: usize = 190;
/// How far a node moves to the right for each loop and branch around it.
const INDENT: usize = 16;
/// Deeper nodes are drawn below one another.
const DEEPEST: usize = 8;
const WIDTH: usize = 1060;
const LONGEST_LABEL: usize = 38;

/// Colours of a standalone picture; on a page, the page's colours apply.
const COLOURS: &str = ":root{color-scheme:light dark;--back:#fff;--text:#1c1f23;--quiet:#5b636d;--arc:#6b747f;\
    --m:#f6d5d8;--s:#ead3e3;--b:#d3e8d6;--c:#d5e2f2;--o:#eef0f3;--wait:#b3261e}\
    @media(prefers-color-scheme:dark){:root{--back:#16191d;--text:#e3e6ea;--quiet:#9aa3ad;--arc:#8a939e;\
    --m:#5a2a30;--s:#4c2a45;--b:#23452b;--c:#26405e;--o:#2a2f36;--wait:#ff8a80}}";
/// Everything about this picture alone.
pub(crate) const SHEET: &str = ".wfg{background:var(--back);font:12px system-ui,sans-serif}.wfg text{fill:var(--text)}\
    .wfg .t{font-size:15px;font-weight:600}.wfg .q{fill:var(--quiet)}.wfg .w{font-size:11px;fill:var(--quiet)}\
    .wfg rect{stroke:var(--arc)}.wfg .m{fill:var(--m)}.wfg .s{fill:var(--s)}.wfg .b{fill:var(--b)}\
    .wfg .c{fill:var(--c)}.wfg .o{fill:var(--o)}\
    .wfg path{fill:none;stroke:var(--arc);stroke-width:1.2}.wfg .d{stroke:var(--wait);stroke-dasharray:5 3}\
    .wfg .dw{font-size:11px;fill:var(--wait)}.wfg .h{fill:var(--arc);stroke:none}.wfg .dh{fill:var(--wait);stroke:none}";

/// The picture by itself: the graph with the weights of its arcs, and beside it what each reduction leaves.
pub fn svg(flow: &WorkFlow) -> String {
    let style = format!("<style>{COLOURS}{SHEET}</style>\n");
    draw(flow, "", "xmlns=\"http://www.w3.org/2000/svg\" ", &style)
}

/// The picture as a part of a page, whose sheet colours it; `id` tells it from others on that page.
pub(crate) fn picture(flow: &WorkFlow, id: &str) -> String {
    draw(flow, id, "", "")
}

fn draw(flow: &WorkFlow, id: &str, namespace: &str, style: &str) -> String {
    let drawing = &flow.drawing;
    let height = (TOP + drawing.nodes.len() * ROW + 40).max(420);
    let mut out = format!(
        "<svg {namespace}width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" class=\"wfg\">\n<title>Work flow graph of {0}</title>\n{style}\
         <defs><marker id=\"{id}h\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path class=\"h\" d=\"M0 0L8 4L0 8z\"/></marker>\
         <marker id=\"{id}dh\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path class=\"dh\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <text class=\"t\" x=\"20\" y=\"28\">{0}</text>\n\
         <text class=\"q\" x=\"20\" y=\"48\">{1} · grid {2} · block {3} · {4} warps on an SM</text>\n",
        escape(&flow.kernel),
        escape(&flow.gpu),
        extents(flow.launch.0),
        extents(flow.launch.1),
        number(drawing.active_warps),
    );
    let _ = writeln!(
        out,
        "<text class=\"q\" x=\"{LEFT}\" y=\"{}\">Work flow graph: an average warp, weights in cycles</text>",
        TOP - 16
    );
    for arc in &drawing.arcs {
        draw_arc(&mut out, drawing, arc, id);
    }
    for (at, node) in drawing.nodes.iter().enumerate() {
        draw_node(&mut out, at, node);
    }
    reduced(&mut out, drawing, id);
    out.push_str("</svg>\n");
    out
}

/// Where a node's box begins.
fn corner(at: usize, node: &DrawnNode) -> (usize, usize) {
    (LEFT + node.depth.min(DEEPEST) * INDENT, TOP + at * ROW)
}

fn draw_node(out: &mut String, at: usize, node: &DrawnNode) {
    let (x, y) = corner(at, node);
    let (class, letter) = match node.role {
        Role::Memory => ("m", "M"),
        Role::Scratchpad => ("s", "S"),
        Role::Barrier => ("b", "B"),
        Role::Compute => ("c", "C"),
        Role::Entry | Role::Exit | Role::Elided => ("o", ""),
    };
    let mut label: String = node.label.chars().take(LONGEST_LABEL).collect();
    if label.len() < node.label.len() {
        label.push('…');
    }
    let line = node
        .line
        .map(|line| format!("line {line}"))
        .unwrap_or_default();
    let (width, height) = BOX;
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\
         <text x=\"{}\" y=\"{}\">{}</text><text class=\"w\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{line}</text>",
        x + 8,
        y + 17,
        escape(format!("{letter} {label}").trim()),
        x + width - 8,
        y + 17,
    );
}

fn draw_arc(out: &mut String, drawing: &Drawing, arc: &Arc, id: &str) {
    let (Some(from), Some(to)) = (drawing.nodes.get(arc.from), drawing.nodes.get(arc.to)) else {
        return;
    };
    let ((x1, y1), (x2, y2)) = (corner(arc.from, from), corner(arc.to, to));
    let (width, height) = BOX;
    let span = arc.from.abs_diff(arc.to);
    let weight = match (arc.relation, arc.share) {
        (_, None) if from.role == Role::Entry => String::new(),
        (_, Some(share)) if from.role == Role::Entry => format!("({})", percent(share)),
        (Relation::Back, _) => format!("×{}", number(arc.weight)),
        (_, Some(share)) => format!("{} ({})", number(arc.weight), percent(share)),
        _ => number(arc.weight),
    };
    let weight = escape(&weight);
    match arc.relation {
        Relation::Transition if span == 1 => {
            let (x, down) = (x1.max(x2) + 30, y1 + height);
            let _ = writeln!(
                out,
                "<path d=\"M{x} {down}V{y2}\" marker-end=\"url(#{id}h)\"/>\
                 <text class=\"w\" x=\"{}\" y=\"{}\">{weight}</text>",
                x + 6,
                down + 13,
            );
        }
        Relation::Transition | Relation::Back => {
            let (a, b) = (y1 + height / 2, y2 + height / 2);
            let out_by = x1.min(x2).saturating_sub(24 + 7 * span.min(20));
            let _ = writeln!(
                out,
                "<path d=\"M{x1} {a}C{out_by} {a} {out_by} {b} {x2} {b}\" marker-end=\"url(#{id}h)\"/>\
                 <text class=\"w\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{weight}</text>",
                (out_by + 24).min(x1),
                usize::midpoint(a, b),
            );
        }
        Relation::Dependence => {
            let (a, b) = (y1 + height / 2, y2 + height / 2);
            let (x1, x2) = (x1 + width, x2 + width);
            let out_by = x1.max(x2) + 30 + 9 * span.min(16);
            let _ = writeln!(
                out,
                "<path class=\"d\" d=\"M{x1} {a}C{out_by} {a} {out_by} {b} {x2} {b}\" marker-end=\"url(#{id}dh)\"/>\
                 <text class=\"dw\" x=\"{}\" y=\"{}\">{weight}</text>",
                (x1.max(x2) + 3 * out_by) / 4 + 4,
                usize::midpoint(a, b) + 4,
            );
        }
    }
}

/// What the reductions leave, and what the letters mean.
fn reduced(out: &mut String, drawing: &Drawing, id: &str) {
    let x = 770;
    let _ = writeln!(
        out,
        "<text class=\"q\" x=\"{x}\" y=\"{}\">After reduction</text>",
        TOP - 16
    );
    let steps = [
        ("compute alone", drawing.cyc_compute),
        ("with memory", drawing.entry_to_exit),
    ];
    for (at, (name, weight)) in steps.into_iter().enumerate() {
        let left = x + at * 140;
        let down = TOP + BOX.1;
        for (y, label) in [(TOP, "entry"), (TOP + 2 * ROW, "exit")] {
            let _ = write!(
                out,
                "<rect class=\"o\" x=\"{left}\" y=\"{y}\" width=\"70\" height=\"{}\" rx=\"6\"/>\
                 <text x=\"{}\" y=\"{}\">{label}</text>",
                BOX.1,
                left + 8,
                y + 17,
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{} {down}V{}\" marker-end=\"url(#{id}h)\"/><text x=\"{}\" y=\"{}\">{}</text>\
             <text class=\"w\" x=\"{left}\" y=\"{}\">{name}</text>",
            left + 35,
            TOP + 2 * ROW,
            left + 41,
            TOP + ROW + 16,
            number(weight),
            TOP + 3 * ROW,
        );
    }
    let words = [
        format!("transfers of a warp: {} cycles", number(drawing.cyc_mem)),
        format!("arc out of M: {} cycles", number(drawing.latency_bw)),
        "M global memory · S shared or constant".to_owned(),
        "B barrier · C computation".to_owned(),
        "dashed: latency that other warps do not hide".to_owned(),
        "×n: trip count; (p): part of the warps".to_owned(),
    ];
    for (at, word) in words.iter().enumerate() {
        let y = TOP + 4 * ROW + at * 20;
        let _ = writeln!(out, "<text class=\"w\" x=\"{x}\" y=\"{y}\">{word}</text>");
    }
}
