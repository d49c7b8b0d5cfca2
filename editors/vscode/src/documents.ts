// Which documents the server analyses, and the cursor's position in them.

import * as vscode from "vscode";

const LANGUAGES = ["cuda-cpp", "cuda", "opencl", "hip"];
const FILES = "**/*.{cu,cuh,cl,hip}";
const SCHEMES = ["file", "untitled"];

/** Files on disk and new ones; not the left side of a diff or another extension's virtual documents. */
const kernelFiles = SCHEMES.flatMap((scheme) => [
  ...LANGUAGES.map((language) => ({ scheme, language })),
  { scheme, pattern: FILES },
]);

/** Headers, and host code that may hold kernels in its strings. */
const hostFiles = SCHEMES.flatMap((scheme) => ["c", "cpp"].map((language) => ({ scheme, language })));

/** All that the server is told of; of host code it looks at headers and at what holds kernels. */
export const selector = [...kernelFiles, ...hostFiles];

/** What says that a C or C++ file has a kernel. */
const KERNEL = /__global__|__kernel|kernel\s+void/;

/** Whether a document has kernels, by its language or, in host code, by its words. */
function holdsKernels(document: vscode.TextDocument): boolean {
  if (vscode.languages.match(kernelFiles, document) > 0) return true;
  return vscode.languages.match(hostFiles, document) > 0 && KERNEL.test(document.getText());
}

/** The editor in front, if it shows a document with kernels. */
export function kernelEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor !== undefined && holdsKernels(editor.document) ? editor : undefined;
}

/** All editors in sight that show such a document. */
export function kernelEditors(): vscode.TextEditor[] {
  return vscode.window.visibleTextEditors.filter((editor) => holdsKernels(editor.document));
}

/** The one in front, where there is nothing to do without it. */
export function requireEditor(): vscode.TextEditor {
  const editor = kernelEditor();
  if (editor === undefined) throw new Error("open a CUDA, OpenCL or HIP file first");
  return editor;
}

/** Whether such a document is in sight at all, be the focus where it may. */
export function kernelFileInSight(): boolean {
  return kernelEditors().length > 0;
}
