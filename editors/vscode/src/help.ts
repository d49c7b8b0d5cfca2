// What `warplens.whatWouldHelp` answers, as the entries of a list.

export interface Help<Edit> {
  factors: { factor: string; speedup: number }[];
  actions: { title: string; rule: string; speedup: number; edit: Edit }[];
}

export interface HelpEntry<Edit> {
  label: string;
  description: string;
  edit?: Edit;
}

/** Actions and causes together, the largest predicted speedup first; of equal ones the actions. */
export function entries<Edit>(help: Help<Edit>): HelpEntry<Edit>[] {
  const all: [number, HelpEntry<Edit>][] = [
    ...help.actions.map(({ title, rule, speedup, edit }): [number, HelpEntry<Edit>] => [
      speedup,
      { label: `$(lightbulb) ${title}`, description: rule, edit },
    ]),
    ...help.factors.map(({ factor, speedup }): [number, HelpEntry<Edit>] => [
      speedup,
      { label: `$(info) without ${factor.replace("-", " ")}`, description: `${speedup.toFixed(2)}x faster` },
    ]),
  ];
  return all.sort((a, b) => b[0] - a[0]).map(([, entry]) => entry);
}
