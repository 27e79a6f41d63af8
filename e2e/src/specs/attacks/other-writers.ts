/** Other programs on the node that write rules. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import type { Script } from "@fairlead/lab/support/script";
import { endpointSlice, service } from "@fairlead/testkit";
import { expectNoAlarm } from "../expect.ts";
import { fullSyncs } from "../faults/stage.ts";
import { onlyIn, type Spec } from "../spec.ts";
import { type Mirror, underAttackFromManifests } from "./manifests.ts";
import { type Attacked, startProgram } from "./under-attack.ts";

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
