// warplens.explain: what a rule means, why it costs and what helps.

import * as vscode from "vscode";
import type { App } from "../extension";
import { ask } from "../program";

export async function explain(app: App, given?: string | { rule?: string }): Promise<void> {
  const rule = (typeof given === "string" ? given : given?.rule) ?? (await choose(app));
  if (rule === undefined) return;
  await app.pages.show(rule, await ask(app.session, ["explain", rule]));
}

async function choose(app: App): Promise<string | undefined> {
  const here = rulesAtCursor();
  const items = ask(app.session, ["explain"]).then((list) =>
    list
      .split("\n")
      .map((line) => /^(\S+)\s*(.*)$/.exec(line.trim()))
      .flatMap((match) => (match?.[1] === undefined ? [] : [{ label: match[1], description: match[2] ?? "" }]))
      .sort((a, b) => Number(here.has(b.label)) - Number(here.has(a.label))),
  );
  const choice = await vscode.window.showQuickPick(items, {
    title: "Explain which rule?",
    placeHolder: "Those of the line with the cursor come first",
    matchOnDescription: true,
  });
  return choice?.label;
}

function rulesAtCursor(): Set<string> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return new Set();
  const line = editor.selection.active.line;
  return new Set(
    vscode.languages
      .getDiagnostics(editor.document.uri)
      .filter((diagnostic) => diagnostic.source === "warplens")
      .filter(({ range }) => range.start.line <= line && line <= range.end.line)
      .map(({ code }) => String(typeof code === "object" ? code.value : code)),
  );
}
