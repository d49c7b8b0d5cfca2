// Which documents the server looks at, and where the cursor stands in them.

import * as vscode from "vscode";

const LANGUAGES = ["cuda-cpp", "cuda", "opencl", "hip"];
const FILES = "**/*.{cu,cuh,cl,hip}";

/** Files on disk and new ones; not the left side of a diff or another extension's virtual documents. */
export const selector = ["file", "untitled"].flatMap((scheme) => [
  ...LANGUAGES.map((language) => ({ scheme, language })),
  { scheme, pattern: FILES },
]);

/** The editor in front, if it shows a document that the server looks at. */
export function kernelEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor !== undefined && vscode.languages.match(selector, editor.document) > 0 ? editor : undefined;
}

/** The same, where there is nothing to do without one. */
export function requireEditor(): vscode.TextEditor {
  const editor = kernelEditor();
  if (editor === undefined) throw new Error("open a CUDA, OpenCL or HIP file first");
  return editor;
}

/** Whether such a document is in sight at all, be the focus where it may. */
export function kernelFileInSight(): boolean {
  return vscode.window.visibleTextEditors.some((editor) => vscode.languages.match(selector, editor.document) > 0);
}
