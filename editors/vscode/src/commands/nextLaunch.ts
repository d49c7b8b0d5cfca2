// warplens.nextLaunch: shows a kernel with several launches under the next one.

import * as vscode from "vscode";
import type { App } from "../extension";
import { kernel, type Target } from "./pages";

interface Shown {
  number: number;
  of: number;
  launch: string;
}

export async function nextLaunch(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { number, of, launch } = await app.session.execute<Shown>("warplens.nextLaunch", target);
  const which = of > 1 ? `launch ${number} of ${of}: ${launch}` : "only one launch was found";
  vscode.window.setStatusBarMessage(`${target.kernel}: ${which}`, 5000);
}
