// What `warplens.whatWouldHelp` answers, as the entries of a list.

export interface Help<Edit> {
  /** The largest gain first. */
  entries: HelpItem<Edit>[];
}

export interface HelpItem<Edit> {
  kind: "edit" | "finding" | "cause";
  title: string;
  gain: number;
  /** Of an edit or a finding. */
  rule?: string;
  /** Where it is, or where most of it is. */
  range?: Place | null;
  edit?: Edit;
}

/** A range as the protocol has it. */
export interface Place {
  start: { line: number; character: number };
}

export interface HelpEntry<Edit> {
  label: string;
  description: string;
  edit?: Edit;
  /** Where a finding or a cause is. */
  place?: Place;
}

const ICONS = { edit: "lightbulb", finding: "search", cause: "info" };

/** The entries as they come, what they are told by an icon. */
export function entries<Edit>(help: Help<Edit>): HelpEntry<Edit>[] {
  return help.entries.map(({ kind, title, rule, range, edit }) => {
    const entry = { label: `$(${ICONS[kind]}) ${title}`, description: rule ?? "what the kernel waits for" };
    if (edit !== undefined) return { ...entry, edit };
    return range ? { ...entry, place: range } : entry;
  });
}
