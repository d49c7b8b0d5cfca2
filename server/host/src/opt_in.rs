//! Which kernels a program asks more shared memory for than a block has without asking.

/// Calls that are looked at in a text.
const MOST_CALLS: usize = 256;

/// What the functions of CUDA and HIP have in common that set one.
const SETS: &str = "FuncSetAttribute";

/// True where a text sets any attribute of a function: else there is nothing to look for.
pub(crate) fn sets_attributes(text: &str) -> bool {
    text.contains(SETS)
}

/// True where a text sets the largest dynamic shared memory of a kernel, or of one that it names by a variable.
pub(crate) fn asks_for_shared(text: &str, kernel: &str) -> bool {
    let calls = text.match_indices(SETS).take(MOST_CALLS);
    calls.into_iter().any(|(at, name)| {
        let Some(arguments) = arguments(&text[at + name.len()..]) else {
            return false;
        };
        let Some((function, attribute)) = arguments.split_once(',') else {
            return false;
        };
        let sets = ["MaxDynamicSharedMemorySize", "MAX_DYNAMIC_SHARED_SIZE"];
        let mut words = words(function);
        sets.iter().any(|set| arguments.contains(set))
            && !attribute.is_empty()
            && (words.clone().any(|word| word == kernel)
                || !words.any(|word| is_function(text, word)))
    })
}

/// True where a text allows a kernel's clusters more blocks than every GPU has room for.
pub(crate) fn allows_large_clusters(text: &str) -> bool {
    let allows = [
        "NonPortableClusterSizeAllowed",
        "NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
    ];
    allows.iter().any(|attribute| text.contains(attribute))
}

/// What is between the brackets that a text begins with.
fn arguments(text: &str) -> Option<&str> {
    let inner = text.trim_start().strip_prefix('(')?;
    let mut depth = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&inner[..at]);
        }
    }
    None
}

fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

/// True where a text declares a function of that name that gives nothing, as kernels do.
fn is_function(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let behind = text[at + name.len()..].trim_start();
        behind.starts_with('(') && text[..at].trim_end().ends_with("void")
            || behind.starts_with('(')
                && text[..at].trim_end().ends_with(')')
                && text[..at].contains("__global__")
    })
}

#[cfg(test)]
mod tests {
    use super::asks_for_shared;

    #[test]
    fn a_kernel_that_is_named_is_asked_for_and_another_one_is_not() {
        let text = "__global__ void k(int *a) {} __global__ void other() {}\n\
                    void f() { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536); }";
        assert!(asks_for_shared(text, "k"));
        assert!(!asks_for_shared(text, "other"));
    }

    #[test]
    fn a_kernel_behind_a_variable_may_be_any() {
        let text = "__global__ void k(int *a) {}\n\
                    void f() { auto kernel = k; check(cudaFuncSetAttribute((void *)kernel, \
                    cudaFuncAttributeMaxDynamicSharedMemorySize, bytes(1, 2))); }";
        assert!(asks_for_shared(text, "k"));
    }

    #[test]
    fn another_attribute_asks_for_nothing() {
        let text = "void f() { cudaFuncSetAttribute(k, cudaFuncAttributePreferredSharedMemoryCarveout, 100); }";
        assert!(!asks_for_shared(text, "k"));
    }
}
