import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { socketText } from "@fairlead/base";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { clientA, clusterObjects, type Host, webA1, webB1, workload } from "@fairlead/testkit";
import { execa } from "execa";
import { type ServedNode, serveNode } from "./served.ts";
import { type Spec, unequal } from "./suite.ts";

const tcp = (...endpoints: readonly Host[]) => workload(12, { endpoints });
const sticky = (...endpoints: readonly Host[]) => workload(101, { endpoints, affinitySeconds: 600 });
const udp = (...endpoints: readonly Host[]) => workload(13, { endpoints, protocol: "UDP" });

const weight = (host: Host, value: number) => `${socketText(host.addresses.IPv4, 8080)} ${value}`;

/** An endpoint that goes away: what it has goes on, what is new goes elsewhere. */
export const drainSpecs: readonly Spec[] = [
  drainSpec("a long TCP transfer goes on, new connections go elsewhere", tcp, async () => {}),
  drainSpec("session affinity holds no client on what drains", sticky, async () => {}),
  drainSpec("a restart of the agent in between changes nothing", tcp, (node) => node.restart()),
  {
    name: "ipvs drain: UDP moves at once",
    run: async (lab) => {
      const { clusterIP } = udp(webA1);
      const node = await serveNode(lab, [...clusterObjects, ...udp(webA1).objects]);
      try {
        const before = await askUdp(lab, clusterIP.IPv4);
        await node.change([...clusterObjects, ...udp(webB1).objects]);
        return [
          ...unequal("before", before, [webA1.name]),
          ...unequal("destinations", await node.destinations(clusterIP.IPv4), [weight(webB1, 1)]),
          ...unequal("after", await askUdp(lab, clusterIP.IPv4), [webB1.name]),
        ];
      } finally {
        await node.cleanup();
      }
    },
  },
];

interface TransferEnd {
  readonly answers: number;
  /** Everybody who answered. */
  readonly servers: readonly string[];
  /** `none`, or what cut the connection. */
  readonly error: string;
}

/** A transfer that has begun. */
interface Transfer {
  end(): Promise<TransferEnd>;
}

const SCRIPT = fileURLToPath(new URL("transfer-main.ts", import.meta.url));

/** Begins a long transfer over one TCP connection. */
export async function beginTransfer(lab: Lab, from: Host, to: string, port: number): Promise<Transfer> {
  const [program = "nsenter", ...prefix] = lab.namespace(namespaceOf(from)).argvPrefix;
  const args = [...prefix, process.execPath, "--no-warnings", SCRIPT, to, String(port)];
  const child = execa(program, args, { stdin: "pipe", buffer: false, reject: false });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const first = await next();
  if (first !== "begun") throw new Error(`the transfer did not begin: ${first}`);
  return {
    end: async () => {
      child.stdin.end();
      const end: TransferEnd = JSON.parse(await next());
      await child;
      return end;
    },
  };
}

type Kind = typeof tcp;

function drainSpec(name: string, kind: Kind, between: (node: ServedNode) => Promise<void>): Spec {
  return {
    name: `ipvs drain: ${name}`,
    run: async (lab) => {
      const node = await serveNode(lab, [...clusterObjects, ...kind(webA1).objects]);
      try {
        return await drain(lab, node, kind, between);
      } finally {
        await node.cleanup();
      }
    },
  };
}

async function drain(
  lab: Lab,
  node: ServedNode,
  kind: Kind,
  between: (node: ServedNode) => Promise<void>,
): Promise<readonly string[]> {
  const { clusterIP } = kind(webA1);
  const ask = () => whoAnswers(lab, clientA, clusterIP.IPv4);
  const transfer = await beginTransfer(lab, clientA, clusterIP.IPv4, 80);
  await node.change([...clusterObjects, ...kind(webB1).objects]);
  await between(node);
  const draining = await node.destinations(clusterIP.IPv4);
  const asked = [await ask(), await ask(), await ask()];
  await node.minute();
  const kept = await node.destinations(clusterIP.IPv4);
  const { servers, error, answers } = await transfer.end();
  return [
    ...unequal("destinations while it drains", draining, [weight(webA1, 0), weight(webB1, 1)].sort()),
    ...unequal(
      "new connections",
      asked,
      Array.from(asked, () => webB1.name),
    ),
    ...unequal("destinations after a minute of transfer", kept, draining),
    ...unequal("the transfer's servers", servers, [webA1.name]),
    ...unequal("the transfer's error", error, "none"),
    ...(answers > 3 ? [] : [`the transfer had ${answers} answers alone`]),
  ];
}

async function askUdp(lab: Lab, to: string): Promise<readonly string[]> {
  const probe = { protocol: "UDP", to, port: 80, count: 4, parallel: 1, timeoutMs: 3_000 } as const;
  const results = await lab.peer(clientA).send(probe);
  return [...new Set(results.map((result) => (result.kind === "answer" ? result.server : result.kind)))];
}
