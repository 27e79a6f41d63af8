/**
 * Rules of others with text that is hard to read: what `iptables-save` prints of them has line ends, quotes and control
 * characters in unexpected places. The kernel and the tools (1.8.9, both variants) take each of them.
 */

/** A rule that another program has: the words after `iptables`, and where it stands. */
export interface ForeignRule {
  readonly name: string;
  readonly table: "nat" | "filter";
  /** Chain of the rule; of others: it is made first. */
  readonly chain: string;
  /** Matches and target, as arguments of `iptables -A CHAIN`. */
  readonly words: readonly string[];
}

/** Chains of others that the rules stand in, and the built-in ones that lead to ours. */
export const FOREIGN_CHAIN = "CNI-OTHERS";
const PLACES = [
  { table: "nat", chain: "PREROUTING" },
  { table: "nat", chain: "OUTPUT" },
  { table: "nat", chain: "POSTROUTING" },
  { table: "nat", chain: FOREIGN_CHAIN },
  { table: "filter", chain: "INPUT" },
  { table: "filter", chain: "FORWARD" },
  { table: "filter", chain: "OUTPUT" },
  { table: "filter", chain: FOREIGN_CHAIN },
] as const;

/** A built-in chain, and one of others. */
const SOME_PLACES = PLACES.filter(({ table, chain }) => chain === (table === "nat" ? "PREROUTING" : FOREIGN_CHAIN));

const remark = (text: string): readonly string[] => ["-m", "comment", "--comment", text];

/** What a comment may say: 255 bytes of anything but zero. */
const COMMENTS: Readonly<Record<string, string>> = {
  "a line end": "two\nlines",
  "only line ends": "\n\n",
  "lines that look like rules":
    "x\n-A OUTPUT -j KUBE-SERVICES\n-A CNI-OTHERS -j DROP\n:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]",
  "lines that look like a table's end": "x\nCOMMIT\n*filter\n:INPUT DROP [0:0]\n# Completed",
  "a tab": "tab\there",
  "an escape sequence": "\u001b[2Jcleared",
  "a return": "before\r\nafter\r",
  "quotes and backslashes": `a"b'c\\d\\"`,
  "a quote at the end": '"',
  "255 bytes": "x".repeat(255),
  "255 quotes": '"'.repeat(255),
  "words of a rule": '" -j DROP -A OUTPUT --comment "',
  "only a dash": "-",
  "only an exclamation mark": "!",
  nothing: "",
};

/** Matches and names without a type in this project, and those whose text the tools print without quotes. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  "a list's name with a line end": ["-m", "recent", "--set", "--name", "two\nlines", "-j", "RETURN"],
  "a list's name with a blank": ["-m", "recent", "--set", "--name", "two words"],
  "a netmask with holes": ["-s", "10.0.0.1/255.0.255.255", "-j", "RETURN"],
  "a match without a type": ["-m", "u32", "--u32", "0x0=0x0&&0x4=0x4", "-j", "RETURN"],
  "a string match": ["-m", "string", "--algo", "bm", "--string", 'a"b\nc', "-j", "RETURN"],
  "byte code": ["-m", "bpf", "--bytecode", "1,6 0 0 0", "-j", "RETURN"],
  "several ports": ["-p", "tcp", "-m", "multiport", "--dports", "1,2,3:4", "-j", "RETURN"],
  "a limit with a tab in its name": ["-m", "hashlimit", "--hashlimit-name", "h\tl", "--hashlimit-upto", "1/s"],
  "a connection's status": ["-m", "conntrack", "--ctstatus", "ASSURED", "-m", "conntrack", "!", "--ctproto", "6"],
  "a protocol without a name": ["-p", "253", "-j", "RETURN"],
  "a mark under an empty mask": ["-m", "mark", "--mark", "0x1/0x0", "-j", "RETURN"],
};

/** Names of interfaces belong to built-in chains of a direction, so they stand in chains of others. */
const INTERFACES: Readonly<Record<string, string>> = {
  "an interface with a quote in its name": 'a"b',
  "an interface with a quote before its name": '"ab',
  "an interface with a line end in its name": "a\nb",
  "an interface with a backslash in its name": "a\\b",
};

/** Every text in one place at least, the comments in each: and the others where they may stand. */
export const foreignRules: readonly ForeignRule[] = [
  ...PLACES.flatMap((place) =>
    Object.entries(COMMENTS).map(([name, text]) => ({
      name: `a comment: ${name} (${place.table} ${place.chain})`,
      ...place,
      words: [...remark(text), "-s", "192.0.2.1", "-j", "RETURN"],
    })),
  ),
  ...Object.entries(OTHERS).flatMap(([name, words]) =>
    SOME_PLACES.map((place) => ({ name: `${name} (${place.table} ${place.chain})`, ...place, words })),
  ),
  ...Object.entries(INTERFACES).flatMap(([name, value]) => [
    { name, table: "nat" as const, chain: "PREROUTING", words: ["-i", value, "-j", "RETURN"] },
    {
      name,
      table: "filter" as const,
      chain: "INPUT",
      words: ["-i", value, "-m", "addrtype", "--dst-type", "LOCAL", "--limit-iface-in"],
    },
    { name, table: "nat" as const, chain: "OUTPUT", words: ["-o", value, "-j", "RETURN"] },
    { name, table: "filter" as const, chain: "FORWARD", words: ["-i", value, "-j", "RETURN"] },
    { name, table: "filter" as const, chain: FOREIGN_CHAIN, words: ["-o", value, "-j", "RETURN"] },
  ]),
];

/** The same with addresses of a family. */
export function foreignRulesOf(family: "IPv4" | "IPv6"): readonly ForeignRule[] {
  if (family === "IPv4") return foreignRules;
  const other: Readonly<Record<string, string>> = {
    "192.0.2.1": "2001:db8::1",
    "10.0.0.1/255.0.255.255": "fd00::1/ffff:0:ffff::",
  };
  return foreignRules.map((rule) => ({ ...rule, words: rule.words.map((word) => other[word] ?? word) }));
}

/**
 * A script for `sh` that has a tool add rules, each word as it is: processes that a test starts one by one take three
 * times the CPU.
 *
 * @param tool such as `ip6tables-nft`
 */
export function scriptOf(tool: string, where: "-A" | "-I", rules: readonly Omit<ForeignRule, "name">[]): string {
  const lines = rules.map(({ table, chain, words }) =>
    [tool, "-w", "5", "-t", table, where, chain, ...words].map(quoted).join(" "),
  );
  return ["set -e", ...lines, ""].join("\n");
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
