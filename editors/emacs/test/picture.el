;;; picture.el --- What the book shows of Emacs  -*- lexical-binding: t; -*-

;; Started by run.sh in a terminal of its own with WARPLENS_PROJECT. Point is left in an access with a finding.

(setq inhibit-startup-screen t
      native-comp-async-report-warnings-errors nil
      eldoc-echo-area-use-multiline-p 8)
(menu-bar-mode -1)
(load-theme 'tango-dark t)
(find-file (expand-file-name "transpose.cu" (getenv "WARPLENS_PROJECT")))
(goto-char (point-min))
(search-forward "void transpose_tiled")
(recenter 1)
(search-forward "= tile[threadIdx.x]")
(backward-char 12)
