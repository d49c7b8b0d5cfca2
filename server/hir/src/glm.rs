//! The vectors, matrices and quaternions of GLM, for programs that have it beside themselves and not in the tree.
//!
//! Declared in C++ as GLM 1.0 defines them with its default settings: columns first, no alignment beyond that of the element, so
//! that `glm::vec4` in memory is four floats and not one vector. The names here begin with `glm_`, which represents the namespace:
//! a program's own `vec3` is another one.

use crate::on_demand::Library;
use std::fmt::Write as _;

const LETTERS: [&str; 4] = ["x", "y", "z", "w"];

/// `glm::name` as the text below calls it.
pub(crate) fn declared(name: &str) -> String {
    format!("glm_{name}")
}

/// Its declarations.
pub(crate) static LIBRARY: Library = Library::new(
    &["glm"],
    |unit| unit.templates.contains_key("glm_vec"),
    text,
);

/// The declarations.
fn text() -> String {
    let mut text = String::from(
        "template <int L, class T> struct glm_vec;\n\
         template <int C, int R, class T> struct glm_mat;\n\
         template <class T> struct glm_qua;\n",
    );
    for length in 2..=4 {
        text.push_str(&vector(length));
    }
    for columns in 2..=4 {
        for rows in 2..=4 {
            text.push_str(&matrix(columns, rows));
        }
    }
    text.push_str(QUATERNION);
    for (prefix, ty) in [
        ("", "float"),
        ("f", "float"),
        ("d", "double"),
        ("i", "int"),
        ("u", "unsigned"),
        ("b", "bool"),
    ] {
        for length in 2..=4 {
            let _ = writeln!(
                text,
                "using glm_{prefix}vec{length} = glm_vec<{length}, {ty}>;"
            );
        }
        if matches!(prefix, "i" | "u" | "b") {
            continue;
        }
        let _ = writeln!(text, "using glm_{prefix}quat = glm_qua<{ty}>;");
        for columns in 2..=4 {
            let _ = writeln!(
                text,
                "using glm_{prefix}mat{columns} = glm_mat<{columns}, {columns}, {ty}>;"
            );
            for rows in 2..=4 {
                let _ = writeln!(
                    text,
                    "using glm_{prefix}mat{columns}x{rows} = glm_mat<{columns}, {rows}, {ty}>;"
                );
            }
        }
    }
    text.push_str(FUNCTIONS);
    text
}

/// `each` of every letter, joined.
fn joined(letters: &[&str], between: &str, each: impl Fn(&str) -> String) -> String {
    let all: Vec<String> = letters.iter().map(|letter| each(letter)).collect();
    all.join(between)
}

fn vector(length: usize) -> String {
    let letters = &LETTERS[..length];
    let list = |each: &dyn Fn(&str) -> String| joined(letters, ", ", each);
    let vec = format!("glm_vec<{length}, T>");
    let mut own = format!(
        "template <class T> struct glm_vec<{length}, T> {{\n\
         T {};\nusing value_type = T;\n\
         glm_vec() {{}}\n\
         glm_vec(T s) : {} {{}}\n\
         glm_vec({}) : {} {{}}\n\
         template <class U> glm_vec(const glm_vec<{length}, U> &v) : {} {{}}\n",
        list(&|c| c.to_owned()),
        list(&|c| format!("{c}(s)")),
        list(&|c| format!("T {c}_")),
        list(&|c| format!("{c}({c}_)")),
        list(&|c| format!("{c}(T(v.{c}))")),
    );
    // Shortened, and made longer.
    for longer in length + 1..=4 {
        let _ = writeln!(
            own,
            "glm_vec(const glm_vec<{longer}, T> &v) : {} {{}}",
            list(&|c| format!("{c}(v.{c})"))
        );
    }
    if length > 2 {
        let most = &letters[..length - 1];
        let last = letters[length - 1];
        let _ = writeln!(
            own,
            "glm_vec(const glm_vec<{}, T> &v, T s) : {}, {last}(s) {{}}",
            length - 1,
            joined(most, ", ", |c| format!("{c}(v.{c})"))
        );
    }
    own.push_str(
        "T &operator[](int i) { return (&x)[i]; }\n\
         const T &operator[](int i) const { return (&x)[i]; }\n",
    );
    let _ = writeln!(own, "static constexpr int length() {{ return {length}; }}");
    let _ = writeln!(
        own,
        "{vec} operator-() const {{ return {vec}({}); }}",
        list(&|c| format!("-{c}"))
    );
    for op in ["+", "-", "*", "/"] {
        let _ = writeln!(
            own,
            "{vec} &operator{op}=(const {vec} &b) {{ {} return *this; }}\n\
             {vec} &operator{op}=(T b) {{ {} return *this; }}",
            joined(letters, " ", |c| format!("{c} {op}= b.{c};")),
            joined(letters, " ", |c| format!("{c} {op}= b;")),
        );
        let _ = writeln!(
            own,
            "friend {vec} operator{op}({vec} a, {vec} b) {{ return {vec}({}); }}\n\
             friend {vec} operator{op}({vec} a, T b) {{ return {vec}({}); }}\n\
             friend {vec} operator{op}(T a, {vec} b) {{ return {vec}({}); }}",
            list(&|c| format!("a.{c} {op} b.{c}")),
            list(&|c| format!("a.{c} {op} b")),
            list(&|c| format!("a {op} b.{c}")),
        );
    }
    let dot = joined(letters, " + ", |c| format!("a.{c} * b.{c}"));
    let _ = writeln!(
        own,
        "friend bool operator==({vec} a, {vec} b) {{ return {}; }}\n\
         friend bool operator!=({vec} a, {vec} b) {{ return {}; }}\n\
         friend T dot({vec} a, {vec} b) {{ return {dot}; }}\n\
         friend T length({vec} a) {{ return sqrt(dot(a, a)); }}\n\
         friend T length2({vec} a) {{ return dot(a, a); }}\n\
         friend T distance({vec} a, {vec} b) {{ return length(b - a); }}\n\
         friend {vec} normalize({vec} a) {{ return a * (T(1) / sqrt(dot(a, a))); }}\n\
         friend {vec} reflect({vec} a, {vec} n) {{ return a - n * dot(n, a) * T(2); }}\n\
         friend T *value_ptr({vec} &a) {{ return &a.x; }}\n\
         friend const T *value_ptr(const {vec} &a) {{ return &a.x; }}\n\
         friend T compAdd({vec} a) {{ return {}; }}",
        joined(letters, " && ", |c| format!("a.{c} == b.{c}")),
        joined(letters, " || ", |c| format!("a.{c} != b.{c}")),
        joined(letters, " + ", |c| format!("a.{c}")),
    );
    for function in [
        "abs", "floor", "ceil", "round", "sqrt", "exp", "log", "sin", "cos", "tan",
    ] {
        let _ = writeln!(
            own,
            "friend {vec} {function}({vec} a) {{ return {vec}({}); }}",
            list(&|c| format!("{function}(a.{c})"))
        );
    }
    for function in ["min", "max", "pow", "mod"] {
        let of = if function == "mod" { "fmod" } else { function };
        let _ = writeln!(
            own,
            "friend {vec} {function}({vec} a, {vec} b) {{ return {vec}({}); }}\n\
             friend {vec} {function}({vec} a, T b) {{ return {vec}({}); }}",
            list(&|c| format!("{of}(a.{c}, b.{c})")),
            list(&|c| format!("{of}(a.{c}, b)")),
        );
    }
    let _ = writeln!(
        own,
        "friend {vec} clamp({vec} v, T a, T b) {{ return {vec}({}); }}\n\
         friend {vec} clamp({vec} v, {vec} a, {vec} b) {{ return {vec}({}); }}\n\
         friend {vec} mix({vec} a, {vec} b, T t) {{ return a * (T(1) - t) + b * t; }}\n\
         friend {vec} lerp({vec} a, {vec} b, T t) {{ return a * (T(1) - t) + b * t; }}",
        list(&|c| format!("min(max(v.{c}, a), b)")),
        list(&|c| format!("min(max(v.{c}, a.{c}), b.{c})")),
    );
    if length == 3 {
        let _ = writeln!(
            own,
            "friend {vec} cross({vec} a, {vec} b) {{ return {vec}(a.y * b.z - b.y * a.z, a.z * b.x - b.z * a.x, a.x * b.y - b.x * a.y); }}"
        );
    }
    let columns = list(&|c| format!("a * b.{c}"));
    let _ = writeln!(
        own,
        "friend glm_mat<{length}, {length}, T> outerProduct({vec} a, {vec} b) {{ return glm_mat<{length}, {length}, T>({columns}); }}"
    );
    own.push_str("};\n");
    own
}

fn matrix(columns: usize, rows: usize) -> String {
    let mat = format!("glm_mat<{columns}, {rows}, T>");
    let (column, row) = (
        format!("glm_vec<{rows}, T>"),
        format!("glm_vec<{columns}, T>"),
    );
    let each = |between: &str, one: &dyn Fn(usize) -> String| {
        (0..columns).map(one).collect::<Vec<_>>().join(between)
    };
    let numbers = |one: &dyn Fn(usize, usize) -> String| {
        (0..columns)
            .flat_map(|c| (0..rows).map(move |r| (c, r)))
            .map(|(c, r)| one(c, r))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let of_rows = |one: &dyn Fn(usize) -> String| (0..rows).map(one).collect::<Vec<_>>().join(", ");
    let mut own = format!(
        "template <class T> struct glm_mat<{columns}, {rows}, T> {{\n\
         {column} value[{columns}];\nusing value_type = T;\n\
         glm_mat() {{}}\n\
         glm_mat(T s) {{ {} }}\n\
         glm_mat({}) {{ {} }}\n\
         glm_mat({}) {{ {} }}\n\
         {column} &operator[](int i) {{ return value[i]; }}\n\
         const {column} &operator[](int i) const {{ return value[i]; }}\n\
         static constexpr int length() {{ return {columns}; }}\n",
        each(" ", &|c| {
            (0..rows)
                .map(|r| {
                    format!(
                        "value[{c}].{} = {};",
                        LETTERS[r],
                        if r == c { "s" } else { "T(0)" }
                    )
                })
                .collect::<Vec<_>>()
                .join(" ")
        }),
        numbers(&|c, r| format!("T m{c}{r}")),
        each(" ", &|c| {
            (0..rows)
                .map(|r| format!("value[{c}].{} = m{c}{r};", LETTERS[r]))
                .collect::<Vec<_>>()
                .join(" ")
        }),
        each(", ", &|c| format!("const {column} &c{c}")),
        each(" ", &|c| format!("value[{c}] = c{c};")),
    );
    for larger in columns.max(rows) + 1..=4 {
        let _ = writeln!(
            own,
            "glm_mat(const glm_mat<{larger}, {larger}, T> &m) {{ {} }}",
            each(" ", &|c| format!("value[{c}] = {column}(m.value[{c}]);"))
        );
    }
    for op in ["+", "-"] {
        let _ = writeln!(
            own,
            "{mat} &operator{op}=(const {mat} &b) {{ {} return *this; }}\n\
             friend {mat} operator{op}(const {mat} &a, const {mat} &b) {{ return {mat}({}); }}",
            each(" ", &|c| format!("value[{c}] {op}= b.value[{c}];")),
            each(", ", &|c| format!("a.value[{c}] {op} b.value[{c}]")),
        );
    }
    let _ = writeln!(
        own,
        "{mat} operator-() const {{ return {mat}({}); }}\n\
         {mat} &operator*=(T b) {{ {} return *this; }}\n\
         {mat} &operator/=(T b) {{ {} return *this; }}\n\
         friend {mat} operator*(const {mat} &a, T b) {{ return {mat}({}); }}\n\
         friend {mat} operator/(const {mat} &a, T b) {{ return {mat}({}); }}\n\
         friend {mat} operator*(T b, const {mat} &a) {{ return {mat}({}); }}",
        each(", ", &|c| format!("-value[{c}]")),
        each(" ", &|c| format!("value[{c}] *= b;")),
        each(" ", &|c| format!("value[{c}] /= b;")),
        each(", ", &|c| format!("a.value[{c}] * b")),
        each(", ", &|c| format!("a.value[{c}] / b")),
        each(", ", &|c| format!("a.value[{c}] * b")),
    );
    // Row r of the product with a vector.
    let row_by = |r: usize, of: &dyn Fn(usize) -> String| {
        each(" + ", &|c| {
            format!("a.value[{c}].{} * {}", LETTERS[r], of(c))
        })
    };
    let _ = writeln!(
        own,
        "friend {column} operator*(const {mat} &a, {row} v) {{ return {column}({}); }}\n\
         friend {row} operator*({column} v, const {mat} &a) {{ return {row}({}); }}\n\
         friend glm_mat<{rows}, {columns}, T> transpose(const {mat} &a) {{ return glm_mat<{rows}, {columns}, T>({}); }}",
        of_rows(&|r| row_by(r, &|c| format!("v.{}", LETTERS[c]))),
        each(", ", &|c| format!("dot(v, a.value[{c}])")),
        of_rows(&|r| each(", ", &|c| format!("a.value[{c}].{}", LETTERS[r]))),
    );
    for others in 2..=4 {
        let product = format!("glm_mat<{others}, {rows}, T>");
        let all = (0..others)
            .flat_map(|o| (0..rows).map(move |r| (o, r)))
            .map(|(o, r)| row_by(r, &|c| format!("b.value[{o}].{}", LETTERS[c])))
            .collect::<Vec<_>>()
            .join(", ");
        let _ = writeln!(
            own,
            "friend {product} operator*({mat} a, glm_mat<{others}, {columns}, T> b) {{ return {product}({all}); }}"
        );
    }
    if columns == rows {
        let _ = writeln!(
            own,
            "{mat} &operator*=(const {mat} &b) {{ return *this = *this * b; }}"
        );
    }
    match (columns, rows) {
        (2, 2) => own.push_str(INVERSE_2),
        (3, 3) => own.push_str(INVERSE_3),
        _ => {}
    }
    own.push_str("};\n");
    own
}

const INVERSE_2: &str = "\
friend T determinant(const glm_mat<2, 2, T> &m) { return m.value[0].x * m.value[1].y - m.value[1].x * m.value[0].y; }
friend glm_mat<2, 2, T> inverse(const glm_mat<2, 2, T> &m) {
    T d = T(1) / (m.value[0].x * m.value[1].y - m.value[1].x * m.value[0].y);
    return glm_mat<2, 2, T>(m.value[1].y * d, -m.value[0].y * d, -m.value[1].x * d, m.value[0].x * d);
}
";

const INVERSE_3: &str = "\
friend T determinant(const glm_mat<3, 3, T> &m) {
    return m.value[0].x * (m.value[1].y * m.value[2].z - m.value[2].y * m.value[1].z)
        - m.value[1].x * (m.value[0].y * m.value[2].z - m.value[2].y * m.value[0].z)
        + m.value[2].x * (m.value[0].y * m.value[1].z - m.value[1].y * m.value[0].z);
}
friend glm_mat<3, 3, T> inverse(const glm_mat<3, 3, T> &m) {
    T d = T(1) / determinant(m);
    return glm_mat<3, 3, T>(
        (m.value[1].y * m.value[2].z - m.value[2].y * m.value[1].z) * d, -(m.value[0].y * m.value[2].z - m.value[2].y * m.value[0].z) * d,
        (m.value[0].y * m.value[1].z - m.value[1].y * m.value[0].z) * d, -(m.value[1].x * m.value[2].z - m.value[2].x * m.value[1].z) * d,
        (m.value[0].x * m.value[2].z - m.value[2].x * m.value[0].z) * d, -(m.value[0].x * m.value[1].z - m.value[1].x * m.value[0].z) * d,
        (m.value[1].x * m.value[2].y - m.value[2].x * m.value[1].y) * d, -(m.value[0].x * m.value[2].y - m.value[2].x * m.value[0].y) * d,
        (m.value[0].x * m.value[1].y - m.value[1].x * m.value[0].y) * d);
}
";

/// Stored as x, y, z, w; made of w, x, y, z.
const QUATERNION: &str = "\
template <class T> struct glm_qua {
T x, y, z, w;
using value_type = T;
glm_qua() {}
glm_qua(T w_, T x_, T y_, T z_) : x(x_), y(y_), z(z_), w(w_) {}
glm_qua(T s, const glm_vec<3, T> &v) : x(v.x), y(v.y), z(v.z), w(s) {}
T &operator[](int i) { return (&x)[i]; }
const T &operator[](int i) const { return (&x)[i]; }
glm_qua<T> operator-() const { return glm_qua<T>(-w, -x, -y, -z); }
friend glm_qua<T> operator+(const glm_qua<T> &a, const glm_qua<T> &b) { return glm_qua<T>(a.w + b.w, a.x + b.x, a.y + b.y, a.z + b.z); }
friend glm_qua<T> operator-(const glm_qua<T> &a, const glm_qua<T> &b) { return glm_qua<T>(a.w - b.w, a.x - b.x, a.y - b.y, a.z - b.z); }
glm_qua<T> &operator+=(const glm_qua<T> &b) { w += b.w; x += b.x; y += b.y; z += b.z; return *this; }
glm_qua<T> &operator-=(const glm_qua<T> &b) { w -= b.w; x -= b.x; y -= b.y; z -= b.z; return *this; }
glm_qua<T> &operator*=(T s) { w *= s; x *= s; y *= s; z *= s; return *this; }
glm_qua<T> &operator/=(T s) { w /= s; x /= s; y /= s; z /= s; return *this; }
glm_qua<T> &operator*=(const glm_qua<T> &b) { return *this = *this * b; }
friend glm_qua<T> operator*(const glm_qua<T> &a, T s) { return glm_qua<T>(a.w * s, a.x * s, a.y * s, a.z * s); }
friend glm_qua<T> operator*(T s, const glm_qua<T> &a) { return glm_qua<T>(a.w * s, a.x * s, a.y * s, a.z * s); }
friend glm_qua<T> operator/(const glm_qua<T> &a, T s) { return glm_qua<T>(a.w / s, a.x / s, a.y / s, a.z / s); }
friend glm_qua<T> operator*(const glm_qua<T> &p, const glm_qua<T> &q) {
    return glm_qua<T>(p.w * q.w - p.x * q.x - p.y * q.y - p.z * q.z, p.w * q.x + p.x * q.w + p.y * q.z - p.z * q.y,
        p.w * q.y + p.y * q.w + p.z * q.x - p.x * q.z, p.w * q.z + p.z * q.w + p.x * q.y - p.y * q.x);
}
friend glm_vec<3, T> operator*(const glm_qua<T> &q, const glm_vec<3, T> &v) {
    glm_vec<3, T> u(q.x, q.y, q.z);
    glm_vec<3, T> uv = cross(u, v);
    return v + (uv * q.w + cross(u, uv)) * T(2);
}
friend glm_vec<3, T> rotate(const glm_qua<T> &q, const glm_vec<3, T> &v) { return q * v; }
friend T dot(const glm_qua<T> &a, const glm_qua<T> &b) { return a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z; }
friend T length(const glm_qua<T> &a) { return sqrt(dot(a, a)); }
friend glm_qua<T> normalize(const glm_qua<T> &a) { return a * (T(1) / sqrt(dot(a, a))); }
friend glm_qua<T> conjugate(const glm_qua<T> &a) { return glm_qua<T>(a.w, -a.x, -a.y, -a.z); }
friend glm_qua<T> inverse(const glm_qua<T> &a) { return conjugate(a) / dot(a, a); }
friend glm_qua<T> lerp(const glm_qua<T> &a, const glm_qua<T> &b, T t) { return a * (T(1) - t) + b * t; }
friend glm_qua<T> slerp(const glm_qua<T> &a, const glm_qua<T> &b, T t) {
    T c = dot(a, b);
    T s = T(1);
    if (c < T(0)) { s = T(-1); c = -c; }
    if (c > T(1) - T(1.1920929e-7f)) { return a * (T(1) - t) + b * (s * t); }
    T angle = acos(c);
    return (a * sin((T(1) - t) * angle) + b * (s * sin(t * angle))) / sin(angle);
}
friend glm_mat<3, 3, T> mat3_cast(const glm_qua<T> &q) {
    T xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z, xz = q.x * q.z, xy = q.x * q.y, yz = q.y * q.z, wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z;
    return glm_mat<3, 3, T>(T(1) - T(2) * (yy + zz), T(2) * (xy + wz), T(2) * (xz - wy), T(2) * (xy - wz), T(1) - T(2) * (xx + zz),
        T(2) * (yz + wx), T(2) * (xz + wy), T(2) * (yz - wx), T(1) - T(2) * (xx + yy));
}
};
template <class T> glm_qua<T> glm_quat_cast(const glm_mat<3, 3, T> &m) {
    T x = m.value[0].x - m.value[1].y - m.value[2].z;
    T y = m.value[1].y - m.value[0].x - m.value[2].z;
    T z = m.value[2].z - m.value[0].x - m.value[1].y;
    T w = m.value[0].x + m.value[1].y + m.value[2].z;
    int index = 0;
    T most = w;
    if (x > most) { most = x; index = 1; }
    if (y > most) { most = y; index = 2; }
    if (z > most) { most = z; index = 3; }
    T v = sqrt(most + T(1)) * T(0.5);
    T s = T(0.25) / v;
    if (index == 0) { return glm_qua<T>(v, (m.value[1].z - m.value[2].y) * s, (m.value[2].x - m.value[0].z) * s, (m.value[0].y - m.value[1].x) * s); }
    if (index == 1) { return glm_qua<T>((m.value[1].z - m.value[2].y) * s, v, (m.value[0].y + m.value[1].x) * s, (m.value[2].x + m.value[0].z) * s); }
    if (index == 2) { return glm_qua<T>((m.value[2].x - m.value[0].z) * s, (m.value[0].y + m.value[1].x) * s, v, (m.value[1].z + m.value[2].y) * s); }
    return glm_qua<T>((m.value[0].y - m.value[1].x) * s, (m.value[2].x + m.value[0].z) * s, (m.value[1].z + m.value[2].y) * s, v);
}
";

const FUNCTIONS: &str = "\
template <class T> glm_vec<2, T> glm_make_vec2(const T *p) { return glm_vec<2, T>(p[0], p[1]); }
template <class T> glm_vec<3, T> glm_make_vec3(const T *p) { return glm_vec<3, T>(p[0], p[1], p[2]); }
template <class T> glm_vec<4, T> glm_make_vec4(const T *p) { return glm_vec<4, T>(p[0], p[1], p[2], p[3]); }
template <class T> glm_mat<2, 2, T> glm_make_mat2(const T *p) { return glm_mat<2, 2, T>(p[0], p[1], p[2], p[3]); }
template <class T> glm_mat<3, 3, T> glm_make_mat3(const T *p) { return glm_mat<3, 3, T>(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]); }
template <class T> glm_mat<4, 4, T> glm_make_mat4(const T *p) {
    return glm_mat<4, 4, T>(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14], p[15]);
}
template <class T> T glm_mix(T a, T b, T t) { return a * (T(1) - t) + b * t; }
template <class T> T glm_clamp(T v, T a, T b) { return min(max(v, a), b); }
template <class T> T glm_inversesqrt(T a) { return T(1) / sqrt(a); }
template <class T> T glm_radians(T a) { return a * T(0.01745329251994329577f); }
template <class T> T glm_degrees(T a) { return a * T(57.295779513082320877f); }
template <class T> T glm_epsilon() { return T(1.1920929e-7f); }
template <class T> T glm_pi() { return T(3.14159265358979323846); }
template <class T> T glm_atan(T y, T x) { return atan2(y, x); }
";
