// warplens.setLaunch: asks for block, grid and arguments of a kernel, starting from what holds now. What is left empty is
// left to the source and the settings; all left empty takes an earlier choice back.

import * as vscode from "vscode";
import { requireEditor } from "../documents";
import { kernelAt } from "../estimate";
import type { App } from "../extension";
import { parseArgs, parseSize, showSize, type Size } from "../launch";

export interface Launch {
  uri: string;
  kernel: string;
  grid?: Size;
  block?: Size;
  args?: Record<string, number>;
}

export async function setLaunch(app: App, given: Partial<Launch> = {}): Promise<void> {
  const values = given.block ?? given.grid ?? given.args;
  // A lens names the kernel: what it leaves open is typed where the time is seen.
  if (given.uri !== undefined && given.kernel !== undefined && values === undefined) {
    return app.launches.show({ uri: given.uri, kernel: given.kernel });
  }
  const complete = given.uri !== undefined && given.kernel !== undefined && values !== undefined;
  const launch = complete ? given : await askUser(app, given);
  if (launch === undefined) return;
  await app.session.execute("warplens.setLaunch", launch);
}

async function askUser(app: App, given: Partial<Launch>): Promise<Launch | undefined> {
  const document =
    given.uri === undefined
      ? requireEditor().document
      : await vscode.workspace.openTextDocument(vscode.Uri.parse(given.uri));
  const kernel = await kernelAt(app.session, document, requireEditor().selection.active.line, given.kernel);
  if (kernel === undefined) throw new Error("there is no kernel in this file");

  const title = `Launch of ${kernel.kernel}`;
  const block = await input(title, "Threads of a block", "32,8", showSize(kernel.launch.block), sizeOrNone);
  if (block === undefined) return undefined;
  const grid = await input(title, "Blocks of the grid", "64,64", showSize(kernel.launch.grid), sizeOrNone);
  if (grid === undefined) return undefined;
  const now = kernel.assumptions.filter(({ symbol, value }) => /^[A-Za-z_]\w*$/.test(symbol) && /^-?\d+$/.test(value));
  const args = await input(
    title,
    "Values of integer parameters",
    "n=1024",
    now.map(({ symbol, value }) => `${symbol}=${value}`).join(" "),
    parseArgs,
  );
  if (args === undefined) return undefined;
  return {
    uri: document.uri.toString(),
    kernel: kernel.kernel,
    ...(block !== null && { block }),
    ...(grid !== null && { grid }),
    ...(Object.keys(args).length > 0 && { args }),
  };
}

function sizeOrNone(typed: string): Size | null | string {
  return typed.trim() === "" ? null : parseSize(typed);
}

/** Asks until the text parses; none where the user gives up. */
async function input<T>(
  title: string,
  prompt: string,
  placeHolder: string,
  value: string,
  parse: (typed: string) => T | string,
): Promise<T | undefined> {
  const typed = await vscode.window.showInputBox({
    title,
    prompt: `${prompt}; empty leaves it to the source`,
    placeHolder,
    value,
    ignoreFocusOut: true,
    validateInput: (text) => {
      const parsed = parse(text);
      return typeof parsed === "string" ? parsed : undefined;
    },
  });
  if (typed === undefined) return undefined;
  const parsed = parse(typed);
  return typeof parsed === "string" ? undefined : parsed;
}
