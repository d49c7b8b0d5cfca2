//! The copies past the registers that several threads share, for the toolkit's headers are not read.

use crate::on_demand::Library;

/// Its declarations.
pub(crate) static LIBRARY: Library = Library::new(
    &["memcpy_async"],
    |unit| unit.functions.contains_key(BY_GROUP),
    || TEXT.to_owned(),
);

/// The function below that copies as a group.
pub(crate) const BY_GROUP: &str = "copied_by_group";
/// The one that copies as the calling thread.
pub(crate) const BY_THREAD: &str = "copied_by_thread";

/// `W` are the bytes that one thread copies at a time: what the type of the elements, or the program, says they are aligned to.
const TEXT: &str = "
template <int W, class G>
__device__ void copied_by_group(G group, unsigned char *to, const unsigned char *from, unsigned long bytes) {
    for (unsigned long at = group.thread_rank() * W; at < bytes; at += group.size() * W) {
        __pipeline_memcpy_async(to + at, from + at, W);
    }
}
template <int W>
__device__ void copied_by_thread(unsigned char *to, const unsigned char *from, unsigned long bytes) {
    for (unsigned long at = 0; at < bytes; at += W) {
        __pipeline_memcpy_async(to + at, from + at, W);
    }
}
";
