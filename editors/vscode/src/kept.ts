// Launches that the user keeps for this workspace: chosen again whenever the server starts.

import type { LaunchValues } from "./launch";
import type { Session } from "./session";

const KEPT = "warplens.keptLaunches";

/** By document, by kernel. */
type Launches = Record<string, Record<string, LaunchValues>>;

interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

interface Kernel {
  uri: string;
  kernel: string;
}

export class Kept {
  constructor(
    private readonly session: Pick<Session, "execute">,
    private readonly memory: Memory,
  ) {}

  /** Chooses the launch, now and the next time that this workspace is opened. */
  async keep({ uri, kernel }: Kernel, values: LaunchValues): Promise<void> {
    const all = this.all();
    await this.session.execute("warplens.setLaunch", { uri, kernel, ...values });
    await this.memory.update(KEPT, { ...all, [uri]: { ...all[uri], [kernel]: values } });
  }

  async forget({ uri, kernel }: Kernel): Promise<void> {
    const all = this.all();
    if (all[uri]?.[kernel] === undefined) return;
    const { [kernel]: _, ...others } = all[uri];
    const { [uri]: __, ...files } = all;
    await this.memory.update(KEPT, Object.keys(others).length === 0 ? files : { ...files, [uri]: others });
  }

  /** Chooses all of them again. */
  async restore(): Promise<void> {
    for (const [uri, kernels] of Object.entries(this.all())) {
      for (const [kernel, values] of Object.entries(kernels)) {
        await this.session.execute("warplens.setLaunch", { uri, kernel, ...values });
      }
    }
  }

  private all(): Launches {
    return this.memory.get<Launches>(KEPT) ?? {};
  }
}
