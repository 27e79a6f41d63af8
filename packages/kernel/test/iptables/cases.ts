/** What iptables-restore --noflush does, in both families and variants: run on the real kernel and on the fake. */
import type { IptablesErrorKind, Variant } from "../../src/index.ts";

/** How a restore is refused: what for, and the payload's line that is told. */
export interface Refused {
  readonly kind: IptablesErrorKind;
  readonly line: number;
  /** Text of the line that is told; absent: that line of the payload. */
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

export const cases: readonly Case[] = [
  // Chains: declared, flushed and deleted.
  {
    name: "chains are made and filled",
    when: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -d $HOST -j B\n-A B -j RETURN\n-A OUTPUT -j A\nCOMMIT\n",
    after: ["nat: :A", "nat: :B", "nat: -A OUTPUT -j A", "nat: -A A -d $HOST -j B", "nat: -A B -j RETURN"],
  },
  {
    name: "declaring a chain anew flushes it and keeps what leads to it",
    given: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A B -d $HOST -j ACCEPT\nCOMMIT\n",
    when: "*nat\n:B - [0:0]\n-A B -j RETURN\nCOMMIT\n",
    after: ["nat: :A", "nat: :B", "nat: -A A -j B", "nat: -A B -j RETURN"],
  },
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
  {
    name: "a chain declared twice holds what came last",
    when: "*nat\n:A - [0:0]\n-A A -j ACCEPT\n:A - [0:0]\n-A A -j RETURN\nCOMMIT\n",
    after: ["nat: :A", "nat: -A A -j RETURN"],
  },
  {
    name: "flush of a chain that is not there",
    when: "*nat\n-F NOPE\nCOMMIT\n",
    refused: onTheWay(2, /No chain\/target\/match by that name/),
  },
  {
    name: "flush",
    given: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A OUTPUT -j A\nCOMMIT\n",
    when: "*nat\n-F A\n-F OUTPUT\n-X B\nCOMMIT\n",
    after: ["nat: :A"],
  },
  {
    name: "delete of a chain",
    given: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\nCOMMIT\n",
    when: "*nat\n:A - [0:0]\n:B - [0:0]\n-X B\n-X A\nCOMMIT\n",
    after: [],
  },
  {
    name: "delete of a chain that is not there",
    when: "*nat\n-X NOPE\nCOMMIT\n",
    refused: onTheWay(2, /No chain\/target\/match by that name/),
  },
  {
    name: "delete of a chain twice",
    when: "*nat\n:A - [0:0]\n-X A\n-X A\nCOMMIT\n",
    refused: onTheWay(4, /No chain\/target\/match by that name/),
  },
  {
    name: "use of a chain after its deletion",
    given: "*nat\n:A - [0:0]\nCOMMIT\n",
    when: "*nat\n-X A\n-A A -j ACCEPT\nCOMMIT\n",
    refused: onTheWay(3, /No chain\/target\/match by that name/),
  },
  {
    name: "delete of a chain that is not empty",
    given: "*nat\n:A - [0:0]\n-A A -j ACCEPT\nCOMMIT\n",
    when: "*nat\n-X A\nCOMMIT\n",
    refused: onTheWay(2, /Device or resource busy/),
  },
  {
    name: "delete of a chain that another jumps to",
    given: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\nCOMMIT\n",
    when: "*nat\n:B - [0:0]\n-X B\nCOMMIT\n",
    refused: onTheWay(3, /Device or resource busy/),
  },
  {
    name: "delete of a chain before the one that jumps to it is flushed",
    given: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\nCOMMIT\n",
    when: "*nat\n:B - [0:0]\n-X B\n:A - [0:0]\n-X A\nCOMMIT\n",
    refused: onTheWay(3, /Device or resource busy/),
  },
  {
    name: "delete of the jump and then of its chain",
    given: "*nat\n:A - [0:0]\n-A OUTPUT -j A\nCOMMIT\n",
    when: "*nat\n-D OUTPUT -j A\n:A - [0:0]\n-X A\nCOMMIT\n",
    after: [],
  },
  {
    name: "a chain name of 28 characters",
    when: "*nat\n:KUBE-SVC-A123456789B12345678 - [0:0]\nCOMMIT\n",
    after: ["nat: :KUBE-SVC-A123456789B12345678"],
  },
  {
    name: "a chain name of 29 characters",
    when: "*nat\n:KUBE-SVC-A123456789B123456789X - [0:0]\nCOMMIT\n",
    refused: onLine(2, /KUBE-SVC-A123456789B/),
  },

  // Rules: where they are put, and what is refused of them by themselves.
  {
    name: "insert in front, between and at the end",
    when: "*nat\n:A - [0:0]\n-A A -d $HOST -j ACCEPT\n-I A 1 -j RETURN\n-I A 3 -s $HOST -j RETURN\n-I A 2 -p tcp -j RETURN\nCOMMIT\n",
    after: [
      "nat: :A",
      "nat: -A A -j RETURN",
      "nat: -A A -p tcp -j RETURN",
      "nat: -A A -d $HOST -j ACCEPT",
      "nat: -A A -s $HOST -j RETURN",
    ],
  },
  {
    name: "insert beyond the end",
    when: "*nat\n:A - [0:0]\n-I A 3 -j ACCEPT\nCOMMIT\n",
    refused: onTheWay(3, /Index of insertion too big/),
  },
  {
    name: "delete takes the first equal rule",
    given: "*nat\n:A - [0:0]\n-A A -j RETURN\n-A A -d $HOST -j ACCEPT\n-A A -j RETURN\nCOMMIT\n",
    when: "*nat\n-D A -j RETURN\nCOMMIT\n",
    after: ["nat: :A", "nat: -A A -d $HOST -j ACCEPT", "nat: -A A -j RETURN"],
  },
  {
    name: "delete of a rule that came in the same payload",
    when: "*nat\n:A - [0:0]\n-A A -j ACCEPT\n-A A -j RETURN\n-D A -j ACCEPT\nCOMMIT\n",
    after: ["nat: :A", "nat: -A A -j RETURN"],
  },
  {
    name: "delete of a rule that is not there",
    given: "*nat\n:A - [0:0]\n-A A -j RETURN\nCOMMIT\n",
    when: "*nat\n-A A -j ACCEPT\n-D A -d $HOST -j RETURN\nCOMMIT\n",
    refused: onTheWay(3, /does a matching rule exist/),
  },
  {
    name: "delete tells comments apart",
    given: '*nat\n:A - [0:0]\n-A A -m comment --comment "one two" -j RETURN\nCOMMIT\n',
    when: '*nat\n-D A -m comment --comment "one" -j RETURN\nCOMMIT\n',
    refused: onTheWay(2, /does a matching rule exist/),
  },
  {
    name: "append to a chain that is not there",
    when: "*nat\n-A NOPE -j ACCEPT\nCOMMIT\n",
    refused: onTheWay(2, /No chain\/target\/match by that name/),
  },
  {
    name: "append to another table's built-in chain",
    when: "*nat\n-A FORWARD -j ACCEPT\nCOMMIT\n",
    refused: onTheWay(2, /No chain\/target\/match by that name/),
  },
  {
    name: "an ipset that is not there",
    when: "*nat\n:A - [0:0]\n-A A -m set --match-set NOSET src -j ACCEPT\nCOMMIT\n",
    refused: onLine(3, /Set NOSET doesn't exist/),
  },
  {
    name: "an nfacct object that is not there",
    when: "*filter\n:A - [0:0]\n-A A -m nfacct --nfacct-name nope -j ACCEPT\nCOMMIT\n",
    refused: byKernel(3, /No such file or directory/, 4),
  },
  {
    name: "a match that the tools do not have",
    when: "*nat\n:A - [0:0]\n-A A -m nosuchmatch -j ACCEPT\nCOMMIT\n",
    refused: { kind: "no-extension", line: 3, message: /lack the match "nosuchmatch"/ },
  },
  {
    name: "a match that the kernel does not have",
    when: "*filter\n:A - [0:0]\n-A A -m ipvs --ipvs -j ACCEPT\nCOMMIT\n",
    refused: {
      nft: { kind: "no-extension", line: 3, message: /"ipvs"; try: modprobe xt_ipvs/ },
      legacy: { kind: "no-extension", line: 4, message: /"ipvs"; try: modprobe xt_ipvs/ },
    },
  },
  {
    name: "DNAT with a port of no protocol",
    when: "*nat\n:A - [0:0]\n-A A -j DNAT --to-destination $TO:80\nCOMMIT\n",
    refused: onLine(3, /Need TCP, UDP, SCTP or DCCP with port specification/),
  },
  {
    name: "an address of the other family",
    when: "*nat\n:A - [0:0]\n-A A -d $OTHER -j ACCEPT\nCOMMIT\n",
    refused: onLine(3, /invalid mask|host\/network/),
  },
  {
    name: "DNAT to the other family",
    when: "*nat\n:A - [0:0]\n-A A -p tcp -j DNAT --to-destination $WRONGTO\nCOMMIT\n",
    refused: onLine(3, /Invalid address format|Bad IP address/),
  },
  {
    name: "a reject type of the other family",
    when: "*filter\n:A - [0:0]\n-A A -j REJECT --reject-with $WRONGWITH\nCOMMIT\n",
    refused: onLine(3, /unknown reject type/),
  },
  {
    name: "an out-interface before routing",
    when: "*nat\n-A PREROUTING -o eth0 -j ACCEPT\nCOMMIT\n",
    refused: onLine(2, /Can't use -o with PREROUTING/),
  },
  {
    name: "a tcp port match without the protocol",
    when: "*filter\n:A - [0:0]\n-A A -m tcp --dport 80 -j ACCEPT\nCOMMIT\n",
    refused: { nft: onLine(3, /TCP match requires '-p tcp'/), legacy: { kind: "rejected", line: 4 } },
  },
  {
    name: "a line of nonsense",
    when: "*nat\n:A - [0:0]\nnonsense here\nCOMMIT\n",
    refused: { kind: "rejected", line: 3 },
  },

  // Jumps and loops, and what a hook that leads to a rule does not allow.
  {
    name: "jump to a chain that is not there",
    when: "*nat\n:A - [0:0]\n-A A -j NOPE\n-A A -j RETURN\nCOMMIT\n",
    refused: {
      nft: { kind: "rejected", line: 3, message: /Chain 'NOPE' does not exist/ },
      legacy: { kind: "rejected", line: 3, message: /Couldn't load target `NOPE'/ },
    },
  },
  {
    name: "goto a chain that is not there",
    when: "*nat\n:A - [0:0]\n-A A -g NOPE\nCOMMIT\n",
    refused: onLine(3, /'NOPE'/),
  },
  {
    name: "jump to a chain that comes later",
    when: "*nat\n:A - [0:0]\n-A A -j B\n:B - [0:0]\nCOMMIT\n",
    refused: onLine(3, /[`']B'/),
  },
  {
    name: "delete of a rule whose chain is gone",
    when: "*nat\n-D OUTPUT -j NOPE\nCOMMIT\n",
    refused: onLine(2, /[`']NOPE'/),
  },
  {
    name: "a jump to a built-in chain",
    when: "*nat\n:A - [0:0]\n-A A -j OUTPUT\nCOMMIT\n",
    refused: onTheWay(3, /RULE_APPEND failed/),
  },
  {
    name: "a jump to a name of 29 characters",
    when: "*nat\n:A - [0:0]\n-A A -j KUBE-SVC-A123456789B123456789X\nCOMMIT\n",
    refused: onLine(3, /Invalid target name/),
  },
  {
    name: "a loop that nothing reaches is taken",
    when: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A B -j A\nCOMMIT\n",
    after: ["nat: :A", "nat: :B", "nat: -A A -j B", "nat: -A B -j A"],
  },
  {
    name: "a loop that packets reach",
    when: "*nat\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A B -j A\n-A OUTPUT -j A\nCOMMIT\n",
    refused: byKernel(6, /Too many links/, 7),
  },
  {
    name: "masquerade before routing",
    when: "*nat\n-A PREROUTING -j MASQUERADE\nCOMMIT\n",
    refused: byKernel(2, /Invalid argument/, 3),
  },
  {
    name: "masquerade before routing by way of a chain",
    when: "*nat\n:A - [0:0]\n-A A -j MASQUERADE\n-A PREROUTING -j A\nCOMMIT\n",
    refused: byKernel(4, /Invalid argument/, 5),
  },
  {
    name: "DNAT after routing",
    when: "*nat\n-A POSTROUTING -p tcp -j DNAT --to-destination $TO:80\nCOMMIT\n",
    refused: byKernel(2, /Invalid argument/, 3),
  },
  {
    name: "DNAT in filter",
    when: "*filter\n:A - [0:0]\n-A A -p tcp -j DNAT --to-destination $TO:80\nCOMMIT\n",
    refused: byKernel(3, /Invalid argument/, 4),
  },
  {
    name: "REJECT in nat",
    when: "*nat\n:A - [0:0]\n-A A -j REJECT --reject-with $WITH\nCOMMIT\n",
    refused: byKernel(3, /Invalid argument/, 4),
  },

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
    when: "*filter\n:A - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\n-A PREROUTING -j MASQUERADE\nCOMMIT\n",
    refused: byKernel(6, /Invalid argument/, 7),
    after: ["filter: :A"],
  },
  {
    name: "the first table fails, the second is not looked at",
    when: "*filter\n:A - [0:0]\n-A NOPE -j A\nCOMMIT\n*nat\n:B - [0:0]\nCOMMIT\n",
    refused: onTheWay(3, /No chain/),
  },
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

/** What the kernel refuses: legacy knows no better than the COMMIT. */
function byKernel(line: number, errno: RegExp, commit: number): Partial<Record<Variant, Refused>> {
  return {
    nft: { kind: "rejected", line, message: errno },
    legacy: { kind: "rejected", line: commit },
  };
}

/** Found while the lines are taken in; legacy tells no more than the line. */
function onTheWay(line: number, message: RegExp): Partial<Record<Variant, Refused>> {
  return {
    nft: { kind: "rejected", line, message },
    legacy: { kind: "rejected", line },
  };
}
