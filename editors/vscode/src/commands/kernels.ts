// Commands about several kernels: jump to one, compare two, what would help in a file.

import * as vscode from "vscode";
import type { WorkspaceEdit } from "vscode-languageclient/node";
import { requireEditor } from "../documents";
import type { App } from "../extension";
import { entries, type Help } from "../help";
import { describeKernel, fileOf, type KernelEntry } from "../kernels";
import { kernels, reveal } from "../kernelTree";
import { kernel, type Target } from "./pages";

interface Entry extends vscode.QuickPickItem {
  entry: KernelEntry;
}

async function choose(app: App, title: string, wanted: (entry: KernelEntry) => boolean): Promise<KernelEntry | undefined> {
  const found = (await kernels(app.session)).filter(wanted);
  if (found.length === 0) throw new Error("there is no such kernel in the open files");
  const items: Entry[] = found.map((entry) => ({
    label: entry.kernel,
    description: describeKernel(entry),
    detail: fileOf(entry.uri),
    entry,
  }));
  const choice = await vscode.window.showQuickPick(items, { title, placeHolder: "Those that take longest first", matchOnDetail: true });
  return choice?.entry;
}

export async function revealKernel(app: App, given?: KernelEntry): Promise<void> {
  const entry = given?.range === undefined ? await choose(app, "Kernels of the open files", () => true) : given;
  if (entry !== undefined) await reveal(entry);
}

export async function compareKernels(app: App, given: Target = {}): Promise<void> {
  const first = await kernel(app, given);
  const other = await choose(app, `Compare ${first.kernel} with`, ({ uri, kernel }) => uri !== first.uri || kernel !== first.kernel);
  if (other === undefined) return;
  const asked = { ...first, with: { uri: other.uri, kernel: other.kernel } };
  const { markdown } = await app.session.execute<{ markdown: string }>("warplens.compareKernels", asked);
  await app.pages.show(`${first.kernel} and ${other.kernel}`, markdown);
}

export async function fixes(app: App, given: { uri?: string } = {}): Promise<void> {
  const uri = given.uri ?? requireEditor().document.uri.toString();
  const help = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "warplens: trying fixes" }, () =>
    app.session.execute<Help<WorkspaceEdit>>("warplens.fixes", { uri }),
  );
  if (help.entries.length === 0) {
    void vscode.window.showInformationMessage(`${fileOf(uri)}: no fix is offered`);
    return;
  }
  const choice = await vscode.window.showQuickPick(entries(help), {
    title: `Fixes in ${fileOf(uri)}`,
    placeHolder: "The largest gain first; one that is chosen is made",
    matchOnDescription: true,
  });
  if (choice?.edit !== undefined) await app.session.apply(choice.edit);
}
