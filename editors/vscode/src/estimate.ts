// The part of `warplens estimate --format json` that this extension reads.

import type * as vscode from "vscode";
import type { Session } from "./session";

export interface Estimate {
  results: KernelResult[];
  /** Headers that were not found, as spelled; older servers do not tell. */
  missing_includes?: string[];
}

export interface KernelResult {
  kernel: string;
  /** Of the kernel's name, from 1. */
  line: number;
  gpu: string;
  /** `run`: how the program is run that makes the launch, with where that is said. */
  launch: { grid: [number, number, number]; block: [number, number, number]; run?: string | null };
  assumptions: { symbol: string; value: string; source: string }[];
}

/**
 * The kernel that the cursor is in: the last one that begins at or above its line (from 0), otherwise the first of the
 * file. With a name, that one.
 */
export async function kernelAt(
  session: Session,
  document: vscode.TextDocument,
  line: number,
  name?: string,
): Promise<KernelResult | undefined> {
  const estimate = await session.execute<Estimate>("warplens.estimate", { uri: document.uri.toString() });
  const kernels = [...(estimate?.results ?? [])].sort((a, b) => a.line - b.line);
  if (name !== undefined) return kernels.find((kernel) => kernel.kernel === name);
  // Attributes and the return type may be on the line above the name.
  return kernels.filter((kernel) => kernel.line <= line + 2).at(-1) ?? kernels[0];
}
