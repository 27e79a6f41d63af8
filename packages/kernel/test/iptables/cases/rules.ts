import { byKernel, type Case, onLine, onTheWay } from "../case.ts";

/** Rules: where they are put, and what is refused of them by themselves. */
export const RULES: readonly Case[] = [
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
];
