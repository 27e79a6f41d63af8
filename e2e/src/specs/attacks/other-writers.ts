/** Other programs on the node that write rules. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Argv } from "@fairlead/kernel";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Script } from "@fairlead/lab/support/script";
import { endpointSlice, service } from "@fairlead/testkit";
import { expectNoAlarm } from "../expect.ts";
import { fullSyncs } from "../faults/stage.ts";
import { able, onlyIn, type Spec } from "../spec.ts";
import { type Mirror, underAttackFromManifests } from "./manifests.ts";
import { type Attacked, startProgram, underAttack } from "./under-attack.ts";

const churns = new WeakMap<Attacked, Script>();

const GONE = "add table ip theirs\ndelete table ip theirs\nadd table ip theirs2\ndelete table ip theirs2\n";

const SERVED_MS = 60_000;
/** A look takes a fiftieth of a core: after some such time each reload has been looked at. */
const LOOKED_MS = 40_000;

/** Nothing of it touches the agent's tables, so nothing of them is written again and no line says that they differ. */
export const otherWriters: Spec = underAttackFromManifests({
  name: "attack: other programs' large and many transactions of nftables, at a start and later",
  unfit: (shape, family) =>
    onlyIn(["nftables"], "other modes do not follow nftables")(shape) ??
    (family === "IPv4" ? undefined : "has IPv4 services"),
  before: async (mirror, attacked) => {
    await mirror.add("many.json", services());
    churns.set(attacked, await startProgram(attacked, "churn", "nft", "-i"));
  },
  act: async (attacked, mirror) => {
    const { node, scene } = attacked;
    const files = [await write(mirror, "addresses", addressList()), await write(mirror, "rules", manyRules())];
    scene.later(async () => void (await node.run(["nft", "-f", await write(mirror, "gone", GONE)])));
    const meanwhile = await attacked.change("meanwhile", SERVED_MS);
    const before = await fullSyncs(node);
    for (const file of files) await reload(node, file);
    const reloaded = await attacked.change("reloaded", SERVED_MS);
    await sleep(LOOKED_MS);
    const asked = (await churns.get(attacked)?.ask("asked")) ?? "none";
    const written = (await fullSyncs(node)) - before;
    if (written > 0) throw new Error(`wanted nothing written again; there were ${written} full syncs`);
    await expectNoAlarm(node);
    return { meanwhile, reloaded, "others' transactions": asked };
  },
});

const READ_MS = 2_000;

const running: Spec = underAttack({
  name: "attack: comments of other programs that look like lines, while the agent runs",
  act: async (attacked) => {
    const rules = await comment(attacked);
    // What an operator asks for when rules are wrong: everything is read.
    process.kill(able(attacked.node.agent.pid)(), "SIGUSR2");
    await sleep(READ_MS);
    return { rules: String(rules), meanwhile: await attacked.change("meanwhile") };
  },
});

const atStart: Spec = underAttack({
  name: "attack: comments of other programs that look like lines, before the agent starts",
  start: async (attacked) => {
    await comment(attacked);
    return {};
  },
  act: async (attacked) => ({ meanwhile: await attacked.change("meanwhile") }),
});

export const hostileComments: readonly Spec[] = [running, atStart];

const SERVICES = 3_000;
const ELEMENTS = 60_000;
const RULES = 20_000;
const RELOADS = 5;

function* services() {
  yield '{"apiVersion":"v1","kind":"List","items":[';
  for (let at = 0; at < SERVICES; at++) {
    const name = `many-${at}`;
    const fields = { namespace: "many", ports: [{ port: 80 }] } as const;
    const endpoints = [{ address: `10.170.${at >> 8}.${at & 255}` }];
    const objects = [
      service(name, { ...fields, clusterIPs: [`10.101.${at >> 8}.${at & 255}`] }),
      endpointSlice(`${name}-1`, { ...fields, service: name, family: "IPv4", endpoints }),
    ];
    yield `${at === 0 ? "" : ","}${objects.map((object) => JSON.stringify(object)).join()}`;
  }
  yield "]}";
}

/** As crowdsec, fail2ban and firewalld reload a list of addresses. */
function addressList(): string {
  const elements = Array.from({ length: ELEMENTS }, (_, at) => `11.${at >> 16}.${(at >> 8) & 255}.${at & 255}`);
  return `add table ip theirs
add set ip theirs s { type ipv4_addr; }
flush set ip theirs s
add element ip theirs s { ${elements.join(",")} }
`;
}

/** As Felix writes a table anew. */
function manyRules(): string {
  const rules = Array.from(
    { length: RULES },
    (_, at) => `add rule ip theirs2 c ip saddr 12.0.${at >> 8}.${at & 255} counter accept`,
  );
  return `add table ip theirs2\ndelete table ip theirs2\nadd table ip theirs2\nadd chain ip theirs2 c\n${rules.join("\n")}\n`;
}

async function write({ folder }: Mirror, name: string, text: string): Promise<string> {
  const file = join(folder, `.${name}.nft`);
  await writeFile(file, text);
  return file;
}

async function reload({ run }: ClusterNode, file: string): Promise<void> {
  for (let time = 0; time < RELOADS; time++) await run(["nft", "-f", file]);
}

/** Where other programs have rules; the last is a chain of their own. */
const PLACES = [
  ["nat", "PREROUTING"],
  ["nat", "OUTPUT"],
  ["nat", "POSTROUTING"],
  ["filter", "INPUT"],
  ["filter", "FORWARD"],
  ["filter", "OUTPUT"],
  ["mangle", "PREROUTING"],
  ["raw", "OUTPUT"],
  ["nat", "OTHERS"],
] as const;

/** What a line-based reader takes for the end of a line, of a table, or for a rule of ours. */
const COMMENTS: readonly string[] = [
  "new\nline",
  "tab\there",
  "escape \u001b[2J",
  'a quote " and a backslash \\',
  "\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -j DROP\nCOMMIT\n*nat\n",
  "carriage\rreturn",
  "\u202egnp.exe",
];

const TOOLS = ["iptables", "ip6tables"] as const;

async function comment({ scene, node }: Attacked): Promise<number> {
  const rules = PLACES.flatMap(([table, chain]) => COMMENTS.map((text) => ({ table, chain, text })));
  const each = async (verb: "-A" | "-D") => {
    for (const tool of TOOLS)
      for (const { table, chain, text } of rules) await node.run(ruleOf(tool, verb, table, chain, text));
  };
  const chains = async (verb: "-N" | "-X") => {
    for (const tool of TOOLS) await node.run([tool, "-w", "-t", "nat", verb, "OTHERS"]);
  };
  await chains("-N");
  scene.later(() => chains("-X"));
  scene.later(() => each("-D"));
  await each("-A");
  return rules.length * TOOLS.length;
}

function ruleOf(tool: string, verb: string, table: string, chain: string, text: string): Argv {
  return [tool, "-w", "-t", table, verb, chain, "-m", "comment", "--comment", text];
}
