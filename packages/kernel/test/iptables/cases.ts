/** What iptables-restore --noflush does, in both families and variants: run on the real kernel and on the fake. */
import type { IptablesErrorKind, Variant } from "../../src/index.ts";

/** How a restore is refused: what for, and the payload's line that the tool names. */
export interface Refused {
  readonly kind: IptablesErrorKind;
  readonly line: number;
  /** Text of the line that the tool names; absent: that line of the payload. */
  readonly text?: string;
  readonly message?: RegExp;
}

export interface Case {
  readonly name: string;
  /** Restored first; must be taken. */
  readonly given?: string;
  readonly when: string;
  /** Absent: it is taken. */
  readonly refused?: Refused | Partial<Record<Variant, Refused>>;
  /** Rules and own chains afterwards, `table: line`; absent: as before. */
  readonly after?: readonly string[];
}

const NO_CHAIN = /No chain\/target\/match by that name/;
const NO_RULE = /does a matching rule exist/;
const BUSY = /Device or resource busy/;

export const cases: readonly Case[] = [
  // Chains: declared, flushed and deleted.
  taken(
    "chains are made and filled",
    ":A; :B; -A A -d $HOST -j B; -A B -j RETURN; -A OUTPUT -j A",
    ":A; :B; -A OUTPUT -j A; -A A -d $HOST -j B; -A B -j RETURN",
  ),
  taken(
    "declaring a chain anew flushes it and keeps what leads to it",
    ":B; -A B -j RETURN",
    ":A; :B; -A A -j B; -A B -j RETURN",
    ":A; :B; -A A -j B; -A B -d $HOST -j ACCEPT",
  ),
  {
    name: "declaring a built-in chain keeps its rules",
    given: "*nat\n-A OUTPUT -d $HOST -j ACCEPT\nCOMMIT\n",
    when: "*nat\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n",
  },
  {
    name: "comments, empty lines and other tables",
    when: "# one\n*nat\n\n# two\n:A - [0:0]\nCOMMIT\n*filter\n:B - [0:0]\nCOMMIT\n# three\n",
    after: ["filter: :B", "nat: :A"],
  },
  taken("a chain declared twice holds what came last", ":A; -A A -j ACCEPT; :A; -A A -j RETURN", ":A; -A A -j RETURN"),
  refused("flush of a chain that is not there", "-F NOPE", onTheWay(2, NO_CHAIN)),
  taken("flush", "-F A; -F OUTPUT; -X B", ":A", ":A; :B; -A A -j B; -A OUTPUT -j A"),
  taken("delete of a chain", ":A; :B; -X B; -X A", "", ":A; :B; -A A -j B"),
  refused("delete of a chain that is not there", "-X NOPE", onTheWay(2, NO_CHAIN)),
  refused("delete of a chain twice", ":A; -X A; -X A", onTheWay(4, NO_CHAIN)),
  refused("use of a chain after its deletion", "-X A; -A A -j ACCEPT", onTheWay(3, NO_CHAIN), ":A"),
  refused("delete of a chain that is not empty", "-X A", onTheWay(2, BUSY), ":A; -A A -j ACCEPT"),
  refused("delete of a chain that another jumps to", ":B; -X B", onTheWay(3, BUSY), ":A; :B; -A A -j B"),
  refused(
    "delete of a chain before the one that jumps to it is flushed",
    ":B; -X B; :A; -X A",
    onTheWay(3, BUSY),
    ":A; :B; -A A -j B",
  ),
  taken("delete of the jump and then of its chain", "-D OUTPUT -j A; :A; -X A", "", ":A; -A OUTPUT -j A"),
  taken("a chain name of 28 characters", ":KUBE-SVC-A123456789B12345678", ":KUBE-SVC-A123456789B12345678"),
  refused("a chain name of 29 characters", ":KUBE-SVC-A123456789B123456789X", onLine(2, /KUBE-SVC-A123456789B/)),
  // Rules: where they are put, and what is refused of them by themselves.
  taken(
    "insert in front, between and at the end",
    ":A; -A A -d $HOST -j ACCEPT; -I A 1 -j RETURN; -I A 3 -s $HOST -j RETURN; -I A 2 -p tcp -j RETURN",
    ":A; -A A -j RETURN; -A A -p tcp -j RETURN; -A A -d $HOST -j ACCEPT; -A A -s $HOST -j RETURN",
  ),
  refused("insert beyond the end", ":A; -I A 3 -j ACCEPT", onTheWay(3, /Index of insertion too big/)),
  taken(
    "delete takes the first equal rule",
    "-D A -j RETURN",
    ":A; -A A -d $HOST -j ACCEPT; -A A -j RETURN",
    ":A; -A A -j RETURN; -A A -d $HOST -j ACCEPT; -A A -j RETURN",
  ),
  taken(
    "delete of a rule that came in the same payload",
    ":A; -A A -j ACCEPT; -A A -j RETURN; -D A -j ACCEPT",
    ":A; -A A -j RETURN",
  ),
  refused(
    "delete of a rule that is not there",
    "-A A -j ACCEPT; -D A -d $HOST -j RETURN",
    onTheWay(3, NO_RULE),
    ":A; -A A -j RETURN",
  ),
  refused(
    "delete distinguishes comments",
    '-D A -m comment --comment "one" -j RETURN',
    onTheWay(2, NO_RULE),
    ':A; -A A -m comment --comment "one two" -j RETURN',
  ),
  refused("append to a chain that is not there", "-A NOPE -j ACCEPT", onTheWay(2, NO_CHAIN)),
  refused("append to another table's built-in chain", "-A FORWARD -j ACCEPT", onTheWay(2, NO_CHAIN)),
  refused(
    "an ipset that is not there",
    ":A; -A A -m set --match-set NOSET src -j ACCEPT",
    onLine(3, /Set NOSET doesn't exist/),
  ),
  refused(
    "an nfacct object that is not there",
    "*filter; :A; -A A -m nfacct --nfacct-name nope -j ACCEPT",
    byKernel(3, /No such file or directory/),
  ),
  refused("a match that the tools do not have", ":A; -A A -m nosuchmatch -j ACCEPT", {
    kind: "no-extension",
    line: 3,
    message: /lack the match "nosuchmatch"/,
  }),
  {
    name: "a match that the kernel does not have",
    when: "*filter\n:A - [0:0]\n-A A -m ipvs --ipvs -j ACCEPT\nCOMMIT\n",
    refused: {
      nft: { kind: "no-extension", line: 3, message: /"ipvs"; try: modprobe xt_ipvs/ },
      legacy: { kind: "no-extension", line: 4, message: /"ipvs"; try: modprobe xt_ipvs/ },
    },
  },
  refused(
    "DNAT with a port of no protocol",
    ":A; -A A -j DNAT --to-destination $TO:80",
    onLine(3, /Need TCP, UDP, SCTP or DCCP with port specification/),
  ),
  refused("an address of the other family", ":A; -A A -d $OTHER -j ACCEPT", onLine(3, /invalid mask|host\/network/)),
  refused(
    "DNAT to the other family",
    ":A; -A A -p tcp -j DNAT --to-destination $WRONGTO",
    onLine(3, /Invalid address format|Bad IP address/),
  ),
  refused(
    "a reject type of the other family",
    "*filter; :A; -A A -j REJECT --reject-with $WRONGWITH",
    onLine(3, /unknown reject type/),
  ),
  refused(
    "an out-interface before routing",
    "-A PREROUTING -o eth0 -j ACCEPT",
    onLine(2, /Can't use -o with PREROUTING/),
  ),
  refused("a line of nonsense", ":A; nonsense here", { kind: "rejected", line: 3 }),
  // Jumps.
  refused(
    "jump to a chain that is not there",
    ":A; -A A -j NOPE; -A A -j RETURN",
    onLine(3, /Chain 'NOPE' does not exist|Couldn't load target `NOPE'/),
  ),
  refused("goto a chain that is not there", ":A; -A A -g NOPE", onLine(3, /'NOPE'/)),
  refused("jump to a chain that comes later", ":A; -A A -j B; :B", onLine(3, /[`']B'/)),
  refused("delete of a rule whose chain is gone", "-D OUTPUT -j NOPE", onLine(2, /[`']NOPE'/)),
  refused("a jump to a built-in chain", ":A; -A A -j OUTPUT", onTheWay(3, /RULE_APPEND failed/)),
  refused(
    "a jump to a name of 29 characters",
    ":A; -A A -j KUBE-SVC-A123456789B123456789X",
    onLine(3, /Invalid target name/),
  ),
  // Tables: what counts together.
  {
    name: "a table without its COMMIT",
    when: "*nat\n:A - [0:0]\n",
    refused: { kind: "rejected", line: 3, text: "" },
  },
  {
    name: "the second table fails, the first stays",
    when: "*filter\n:A - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\n-A NOPE -j B\nCOMMIT\n",
    refused: onTheWay(6, /No chain/),
    after: ["filter: :A"],
  },
  {
    name: "the kernel refuses the second table, the first stays",
    when: "*nat\n:A - [0:0]\nCOMMIT\n*filter\n:B - [0:0]\n-A B -m nfacct --nfacct-name nope -j ACCEPT\nCOMMIT\n",
    refused: byKernel(6, /No such file or directory/),
    after: ["nat: :A"],
  },
  refused(
    "the first table fails, the second is not looked at",
    "*filter; :A; -A NOPE -j A; *nat; :B",
    onTheWay(3, /No chain/),
  ),
  {
    name: "one table twice is two transactions",
    when: "*nat\n:A - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\n-A B -j A\n-A NOPE -j A\nCOMMIT\n",
    refused: onTheWay(7, /No chain/),
    after: ["nat: :A"],
  },
  {
    name: "the rules of a service",
    when: [
      "*nat",
      ":KUBE-MARK-MASQ - [0:0]",
      ":KUBE-SEP-X - [0:0]",
      "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
      '-A KUBE-SEP-X -m comment --comment "ns/name:port with space" -s $HOST -j KUBE-MARK-MASQ',
      "-A KUBE-SEP-X -m recent --name KUBE-SEP-X --set --rsource",
      "-A KUBE-SEP-X -p tcp -m tcp -m statistic --mode random --probability 0.3333333333 -j DNAT --to-destination $TO:80",
      "-A POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
      "-A POSTROUTING -j MASQUERADE --random-fully",
      "COMMIT",
      "",
    ].join("\n"),
    after: [
      "nat: :KUBE-MARK-MASQ",
      "nat: :KUBE-SEP-X",
      "nat: -A POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
      "nat: -A POSTROUTING -j MASQUERADE --random-fully",
      "nat: -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
      'nat: -A KUBE-SEP-X -m comment --comment "ns/name:port with space" -s $HOST -j KUBE-MARK-MASQ',
      "nat: -A KUBE-SEP-X -m recent --name KUBE-SEP-X --set --rsource",
      "nat: -A KUBE-SEP-X -p tcp -m tcp -m statistic --mode random --probability 0.3333333333 -j DNAT --to-destination $TO:80",
    ],
  },
];

/** Both variants say it with the line of the rule. */
function onLine(line: number, message: RegExp): Refused {
  return { kind: "rejected", line, message };
}

/** What the kernel refuses: legacy knows no better than the COMMIT, which comes next. */
function byKernel(line: number, message: RegExp): Partial<Record<Variant, Refused>> {
  return { nft: { kind: "rejected", line, message }, legacy: { kind: "rejected", line: line + 1 } };
}

/** Found while the lines are taken in; legacy reports only the line. */
function onTheWay(line: number, message: RegExp): Partial<Record<Variant, Refused>> {
  return { nft: { kind: "rejected", line, message }, legacy: { kind: "rejected", line } };
}

/** A payload that is taken: lines with `; ` between them, a chain as `:NAME`, of nat unless they name their tables. */
function taken(name: string, when: string, after: string, given?: string): Case {
  const rules = after === "" ? [] : after.split("; ").map((line) => `nat: ${line}`);
  return { name, when: payload(when), after: rules, ...(given !== undefined && { given: payload(given) }) };
}

function refused(name: string, when: string, how: NonNullable<Case["refused"]>, given?: string): Case {
  return { name, when: payload(when), refused: how, ...(given !== undefined && { given: payload(given) }) };
}

function payload(lines: string): string {
  const tables = (lines.startsWith("*") ? lines : `*nat; ${lines}`)
    .split(/; (?=\*)/)
    .map((table) => table.replaceAll("; ", "\n").replace(/^:.*/gm, "$& - [0:0]"));
  return tables.map((table) => `${table}\nCOMMIT\n`).join("");
}
