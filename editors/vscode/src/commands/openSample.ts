// warplens.openSample: the kernels of the walkthrough, in an untitled editor.

import * as vscode from "vscode";

export async function openSample(extension: vscode.Uri): Promise<void> {
  const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(extension, "walkthrough", "sample.cu"));
  const languages = await vscode.languages.getLanguages();
  const document = await vscode.workspace.openTextDocument({
    // Older editors call it otherwise, or not at all.
    language: languages.find((id) => id === "cuda-cpp") ?? languages.find((id) => id === "cuda") ?? "cpp",
    content: new TextDecoder().decode(bytes),
  });
  await vscode.window.showTextDocument(document);
}
