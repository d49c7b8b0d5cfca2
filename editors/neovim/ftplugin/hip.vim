if exists('b:did_ftplugin')
  finish
endif
runtime! ftplugin/cuda.vim
