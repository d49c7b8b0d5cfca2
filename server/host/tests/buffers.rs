//! Programs of OpenCL that are run: what their buffers hold.

mod common;

use common::running::{ran, words};

/// What the first buffer of the only launch holds.
fn held(body: &str) -> Option<Vec<i32>> {
    let text = format!(
        "int main() {{ cl_context c; cl_command_queue q; cl_program p; cl_kernel k = clCreateKernel(p, \"k\", 0);
           int h[4] = {{1, 2, 3, 4}}; {body}
           clSetKernelArg(k, 0, sizeof(cl_mem), &b);
           size_t global = 4; clEnqueueNDRangeKernel(q, k, 1, 0, &global, 0, 0, 0, 0); }}"
    );
    let sites = ran(&text, &[]).sites;
    assert_eq!(sites.len(), 1, "{body}");
    words(sites[0].contents.first()?.as_deref())
}

#[test]
fn a_buffer_holds_what_the_host_gave_it() {
    let buffer = "cl_mem b = clCreateBuffer(c, CL_MEM_READ_ONLY, 16, 0, 0);";
    for (body, expected) in [
        (
            "cl_mem b = clCreateBuffer(c, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(h), h, 0);"
                .to_owned(),
            Some(vec![1, 2, 3, 4]),
        ),
        (
            format!("{buffer} clEnqueueWriteBuffer(q, b, CL_TRUE, 0, sizeof(h), h, 0, 0, 0);"),
            Some(vec![1, 2, 3, 4]),
        ),
        (
            format!("{buffer} int v = 7; clEnqueueFillBuffer(q, b, &v, sizeof(v), 0, 16, 0, 0, 0);"),
            Some(vec![7; 4]),
        ),
        (
            format!("{buffer} int v = 0; clEnqueueFillBuffer(q, b, &v, sizeof(v), 0, 16, 0, 0, 0);"),
            Some(vec![0; 4]),
        ),
        (
            format!(
                "cl_mem a = clCreateBuffer(c, CL_MEM_COPY_HOST_PTR, 16, h, 0); {buffer}
                 clEnqueueCopyBuffer(q, a, b, 0, 0, 16, 0, 0, 0);"
            ),
            Some(vec![1, 2, 3, 4]),
        ),
        // Nothing, a part of it, and what only the device knows.
        (buffer.to_owned(), None),
        (
            format!("{buffer} clEnqueueWriteBuffer(q, b, CL_TRUE, 8, 8, h, 0, 0, 0);"),
            None,
        ),
        (
            format!(
                "{buffer} clEnqueueWriteBuffer(q, b, CL_TRUE, 0, 16, h, 0, 0, 0);
                 int v; clEnqueueFillBuffer(q, b, &v, sizeof(v), 0, 16, 0, 0, 0);"
            ),
            None,
        ),
    ] {
        assert_eq!(held(&body), expected, "{body}");
    }
}
