//! The functions of `cuComplex.h` and `hip_complex.h`, for the toolkits' headers are not read.

use crate::on_demand::Library;

/// They are on vectors of two, which those types are.
pub(crate) static LIBRARY: Library = Library::new(
    &["cuC", "hipC"],
    |unit| unit.functions.contains_key("cuCadd"),
    text,
);

/// The functions of `cuComplex.h` and `hip_complex.h` of one type: `API` is `cu` or `hip`, `TYPE` a vector of two numbers `REAL`,
/// `END` what the names of that type end in. Quotients and absolute values are scaled against overflow, as theirs are.
const COMPLEX: &str = "
inline REAL APICrealEND(TYPE a) { return a.x; }
inline REAL APICimagEND(TYPE a) { return a.y; }
inline TYPE APIConjEND(TYPE a) { TYPE r; r.x = a.x; r.y = -a.y; return r; }
inline TYPE APICaddEND(TYPE a, TYPE b) { TYPE r; r.x = a.x + b.x; r.y = a.y + b.y; return r; }
inline TYPE APICsubEND(TYPE a, TYPE b) { TYPE r; r.x = a.x - b.x; r.y = a.y - b.y; return r; }
inline TYPE APICmulEND(TYPE a, TYPE b) { TYPE r; r.x = a.x * b.x - a.y * b.y; r.y = a.x * b.y + a.y * b.x; return r; }
inline TYPE APICfmaEND(TYPE a, TYPE b, TYPE c) {
    TYPE r; r.x = a.x * b.x + c.x - a.y * b.y; r.y = a.x * b.y + c.y + a.y * b.x; return r;
}
inline TYPE APICdivEND(TYPE a, TYPE b) {
    REAL size = abs(b.x) + abs(b.y);
    REAL scale = 1 / size;
    REAL ax = a.x * scale; REAL ay = a.y * scale; REAL bx = b.x * scale; REAL by = b.y * scale;
    REAL inverse = 1 / (bx * bx + by * by);
    TYPE r; r.x = (ax * bx + ay * by) * inverse; r.y = (ay * bx - ax * by) * inverse; return r;
}
inline REAL APICabsEND(TYPE a) {
    REAL x = abs(a.x); REAL y = abs(a.y);
    REAL larger = x > y ? x : y; REAL smaller = x > y ? y : x;
    REAL ratio = smaller / larger;
    REAL size = larger * sqrt(1 + ratio * ratio);
    return larger == 0 || larger > BIG || smaller > BIG ? larger + smaller : size;
}
inline REAL APICsqabsEND(TYPE a) { return a.x * a.x + a.y * a.y; }
";

/// [`COMPLEX`] for the types of both libraries.
fn text() -> String {
    let of = |api: &str, end: &str, real: &str, ty: &str, big: &str| {
        let text = COMPLEX.replace("API", api).replace("END", end);
        let text = text.replace("REAL", real).replace("TYPE", ty);
        text.replace("BIG", big)
    };
    let both = ["cu", "hip"].map(|api| {
        of(api, "f", "float", "float2", "3.402823466e38f")
            + &of(api, "", "double", "double2", "1.79769313486231570e308")
    });
    both.concat()
}
