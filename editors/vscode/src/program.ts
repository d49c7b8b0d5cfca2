// Short questions to the program that also serves: its other subcommands.

import { execFile } from "node:child_process";
import type { Session } from "./session";

/** Runs `warplens ARGS` and answers its standard output; it may end with one of these statuses. */
export function ask(session: Session, args: string[], statuses: readonly number[] = [0]): Promise<string> {
  const server = session.server;
  if (server === undefined) return Promise.reject(new Error("the server does not run"));
  return new Promise((resolve, reject) => {
    execFile(
      server.path,
      args,
      { timeout: 30_000, maxBuffer: 1 << 26, windowsHide: true, env: { ...process.env, NO_COLOR: "1" } },
      (error, stdout, stderr) => {
        if (error && !statuses.includes(Number(error.code))) reject(new Error(stderr.trim().split("\n")[0] || error.message));
        else resolve(stdout);
      },
    );
  });
}
