import { byKernel, type Case, onLine, onTheWay } from "../case.ts";

/** Jumps and loops, and what a hook that leads to a rule does not allow. */
export const JUMPS: readonly Case[] = [
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
];
