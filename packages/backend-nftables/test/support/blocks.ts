/** A set, a map or a chain, as `nft list` prints it. */
export interface Block {
  /** `chain services` */
  readonly head: string;
  readonly lines: readonly string[];
  /** One for each, in a fixed order: the kernel's own is that of its hashes. */
  readonly elements: readonly string[];
}

/** The blocks of one table's listing. */
export function blocksOf(text: string): readonly Block[] {
  return [...text.matchAll(/^\t((?:set|map|chain) \S+) \{\n(.*?)^\t\}$/gms)].map(([, head = "", body = ""]) => {
    const [, elements = ""] = /^\t\telements = \{ (.*?) \}$/ms.exec(body) ?? [];
    const lines = body.replace(/^\t\telements = \{.*?\}\n/ms, "").split("\n");
    const each = elements.split(/,\s+/).filter((element) => element !== "");
    return { head, lines: lines.map((line) => line.trim()).filter((line) => line !== ""), elements: each.sort() };
  });
}
