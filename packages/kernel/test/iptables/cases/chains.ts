import { type Case, onLine, onTheWay } from "../case.ts";

/** Chains: declared, flushed and deleted. */
export const CHAINS: readonly Case[] = [
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
];
