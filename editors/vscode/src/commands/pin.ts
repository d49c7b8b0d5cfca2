// warplens.pin: the lens of a kernel gives the change since it was pinned.

import * as vscode from "vscode";
import type { App } from "../extension";
import { kernel, type Target } from "./pages";

interface Pinned {
  pinned: boolean;
  time: string;
}

export async function pin(app: App, given: Target = {}): Promise<void> {
  const target = await kernel(app, given);
  const { pinned, time } = await app.session.execute<Pinned>("warplens.pin", target);
  const what = pinned ? `pinned at ${time}` : "unpinned";
  vscode.window.setStatusBarMessage(`${target.kernel}: ${what}`, 5000);
}
