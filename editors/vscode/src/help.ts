// What `warplens.whatWouldHelp` answers, as the entries of a list.

export interface Help<Edit> {
  factors: { factor: string; speedup: number }[];
  actions: { title: string; rule: string; speedup: number; edit: Edit }[];
  /** Findings that no action cures; older servers do not list them. */
  findings?: { title: string; rule: string; speedup: number; range: Place }[];
}

/** A range as the protocol has it. */
export interface Place {
  start: { line: number; character: number };
}

export interface HelpEntry<Edit> {
  label: string;
  description: string;
  edit?: Edit;
  /** Where a finding is. */
  place?: Place;
}

/** Actions, findings and causes together, the largest predicted speedup first; of equal ones in this order. */
export function entries<Edit>(help: Help<Edit>): HelpEntry<Edit>[] {
  const all: [number, HelpEntry<Edit>][] = [
    ...help.actions.map(({ title, rule, speedup, edit }): [number, HelpEntry<Edit>] => [
      speedup,
      { label: `$(lightbulb) ${title}`, description: rule, edit },
    ]),
    ...(help.findings ?? []).map(({ title, rule, speedup, range }): [number, HelpEntry<Edit>] => [
      speedup,
      { label: `$(search) ${title}`, description: rule, place: range },
    ]),
    ...help.factors.map(({ factor, speedup }): [number, HelpEntry<Edit>] => [
      speedup,
      { label: `$(info) without ${factor.replace("-", " ")}`, description: `${speedup.toFixed(2)}x faster` },
    ]),
  ];
  return all.sort((a, b) => b[0] - a[0]).map(([, entry]) => entry);
}
