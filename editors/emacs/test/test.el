;;; test.el --- Drives a real Emacs against a real server  -*- lexical-binding: t; -*-

;; Started by run.sh with WARPLENS_PROJECT, a folder that holds copies of transpose.cu and transpose.cl, and with the
;; program under test as `warplens' on the PATH. Each check waits a bounded time for what it expects.

(require 'cl-lib)

(defvar test-project (file-name-as-directory (getenv "WARPLENS_PROJECT")))
(defvar test-passed 0)
(defvar test-failed 0)

(defmacro test-check (what &rest body)
  "Runs BODY as the check WHAT; an error in it fails the check."
  (declare (indent 1))
  `(condition-case problem
       (progn ,@body
              (cl-incf test-passed)
              (princ (format "ok      %s\n" ,what)))
     (error (cl-incf test-failed)
            (princ (format "FAILED  %s\n        %s\n" ,what (error-message-string problem))))))

(defmacro test-eventually (what form &optional state)
  "Waits until FORM is non-nil and returns it; else fails, saying WHAT and STATE."
  `(let ((until (+ (float-time) 20)) got)
     (while (and (not (setq got ,form)) (< (float-time) until))
       (accept-process-output nil 0.05))
     (or got (error "%s, instead: %S" ,what ,state))))

(defun test-open (name)
  "Visits a file of the project, as a user would."
  (find-file (expand-file-name name test-project))
  ;; What `eglot-ensure' leaves for after the command, of which there is none in a batch.
  (run-hooks 'post-command-hook)
  (test-eventually "a server" (and (eglot-current-server) (eglot-managed-p))))

(defun test-findings ()
  "Messages of the buffer's diagnostics with their lines."
  (mapcar (lambda (one)
            (cons (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-text one)))
          (flymake-diagnostics)))

(defun test-finding (part)
  (cl-find-if (lambda (one) (string-match-p (regexp-quote part) (cdr one))) (test-findings)))

(defun test-line (text)
  "The line with TEXT; point is left at the text's beginning."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0))
  (line-number-at-pos))

(defun test-uri ()
  (concat "file://" buffer-file-name))

(defun test-hover ()
  "The server's answer about point, in a line of ASCII."
  (jsonrpc-request (eglot-current-server) :textDocument/hover
                   (list :textDocument (list :uri (test-uri))
                         :position (list :line (1- (line-number-at-pos)) :character (current-column)))))

(defun test-apply (edit)
  "Applies a workspace edit; newer versions of eglot want to know who asks."
  (apply #'eglot--apply-workspace-edit edit
         (make-list (1- (car (func-arity #'eglot--apply-workspace-edit))) 'test)))

(test-check "a .cu file starts the server and its findings come"
  (test-open "transpose.cu")
  (unless (eq major-mode 'cuda-mode) (error "mode %s" major-mode))
  (flymake-start)
  (let ((found (test-eventually "a bank conflict" (test-finding "32-way bank conflict") (test-findings))))
    (unless (= (car found) (test-line "= tile[threadIdx.x][threadIdx.y + j]"))
      (error "on line %d" (car found)))))

(test-check "a hover tells what the line costs, without Markdown"
  (test-line "tile[threadIdx.x][threadIdx.y + j]")
  (let* ((hover (test-hover))
         (contents (plist-get hover :contents))
         (text (plist-get contents :value)))
    (unless (string-match-p "32 passes, ideal 1" (or text "")) (error "%S" hover))
    (unless (equal (plist-get contents :kind) "plaintext") (error "%S" contents))
    (when (string-match-p "[|`]\\|\\*\\*\\|---" text) (error "Markdown: %s" text))))

(test-check "the echo area shows it"
  (test-line "tile[threadIdx.x][threadIdx.y + j]")
  (let (said)
    (eglot-hover-eldoc-function (lambda (text &rest _) (setq said (substring-no-properties text))))
    (test-eventually "a text" (and said (string-match-p "32 passes, ideal 1" said)) said)))

(test-check "the settings of the workspace are in force"
  (let ((answer (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                                 (list :command "warplens.estimate"
                                       :arguments (vector (list :uri (test-uri)))))))
    (let ((gpu (plist-get (aref (plist-get answer :results) 0) :gpu)))
      (unless (equal gpu "h100-sxm5") (error "%s" gpu)))))

(test-check "an action is made, its finding goes, and undo brings it back"
  (let* ((line (test-line "= tile[threadIdx.x][threadIdx.y + j]"))
         (range (list :start (list :line (1- line) :character 0)
                      :end (list :line line :character 0)))
         (actions (jsonrpc-request (eglot-current-server) :textDocument/codeAction
                                   (list :textDocument (list :uri (test-uri))
                                         :range range :context '(:diagnostics []))))
         (pad (cl-find-if (lambda (one) (string-prefix-p "Pad" (plist-get one :title)))
                          (append actions nil))))
    (unless pad (error "line %d: %S" line actions))
    (undo-boundary)
    (test-apply (plist-get pad :edit))
    (undo-boundary)
    (test-line "float tile[32][33];")
    (eglot--signal-textDocument/didChange)
    (test-eventually "no conflict" (not (test-finding "32-way bank conflict")) (test-findings))
    (undo)
    (eglot--signal-textDocument/didChange)
    (test-eventually "the conflict again" (test-finding "32-way bank conflict") (test-findings))))

(test-check "characters of several bytes move nothing"
  (test-line "= tile[threadIdx.x][threadIdx.y + j]")
  (insert "/* é🚀 */ ")
  (eglot--signal-textDocument/didChange)
  (let* ((column (progn (test-line "tile[threadIdx.x][threadIdx.y + j]") (current-column)))
         (at (test-eventually
              "the finding behind them"
              (cl-find-if (lambda (one)
                            (and (string-match-p "32-way" (flymake-diagnostic-text one))
                                 (save-excursion (goto-char (flymake-diagnostic-beg one))
                                                 (= (current-column) column))))
                          (flymake-diagnostics))
              (test-findings))))
    (ignore at))
  (set-buffer-modified-p nil))

(test-check "an OpenCL file is served as OpenCL"
  (test-open "transpose.cl")
  (unless (eq major-mode 'opencl-mode) (error "mode %s" major-mode))
  (flymake-start)
  (test-eventually "a bank conflict" (test-finding "32-way bank conflict") (test-findings)))

(test-check "the servers end when they are told to"
  (dolist (name '("transpose.cu" "transpose.cl"))
    (with-current-buffer (get-file-buffer (expand-file-name name test-project))
      (let* ((server (eglot-current-server))
             (process (jsonrpc--process server)))
        ;; Emacs waits for the answer to `shutdown', says `exit' and then ends the process itself, whatever it does.
        (eglot-shutdown server)
        (test-eventually "its end" (not (process-live-p process)))))))

(princ (format "%d passed, %d failed\n" test-passed test-failed))
(kill-emacs (if (= test-failed 0) 0 1))
