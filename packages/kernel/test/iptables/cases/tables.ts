import { byKernel, type Case, onTheWay } from "../case.ts";

/** Tables: what counts together. */
export const TABLES: readonly Case[] = [
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
