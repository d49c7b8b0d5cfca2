" HIP has CUDA's keywords and built-in variables.
if exists('b:current_syntax')
  finish
endif
runtime! syntax/cuda.vim
let b:current_syntax = 'hip'
