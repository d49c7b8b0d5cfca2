// warplens.launchPanel: a kernel's launch with its time while it is typed.

import type { App } from "../extension";
import { kernel, type Target } from "./pages";

export async function launchPanel(app: App, given: Target = {}): Promise<void> {
  await app.launches.show(await kernel(app, given));
}
