/** All specs of attacks; those on an agent's ports and on the tools are here. */

import { chmod, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@fairlead/core";
import { agentFile } from "@fairlead/lab/agent";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { expectAnswers, until } from "../expect.ts";
import { PORTS } from "../faults/stage.ts";
import { able, type Figures, notIn, onlyIn, type Scene, type Spec } from "../spec.ts";
import { datagrams, silent } from "./api-servers.ts";
import { claims, manyEndpoints } from "./manifests.ts";
import { otherWriters } from "./other-writers.ts";
import { type Attacked, startProgram, underAttack, untilLogged } from "./under-attack.ts";

const CONNECTIONS = 2_000;

const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

/** Clients of one relay may be many and idle: those of another find descriptors. */
const relayed: Spec = underAttack({
  name: `attack: ${CONNECTIONS.toLocaleString("en")} connections held at one node port's relay, where 1,024 files may be open`,
  unfit: onlyIn(["nftables"], "other modes relay no node port on a loopback address"),
  start: () => ({
    openFiles: 1_024,
    flags: ["--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true", "--nodeport-addresses=primary,localhost"],
  }),
  act: async (attacked) => {
    const { scene, node } = attacked;
    const pods = { selector: { app: "web" }, ports: PORTS, type: "NodePort" } as const;
    const [held, other] = [await scene.service("held", pods), await scene.service("other", pods)];
    const atOther = { to: LOOPBACK[scene.family], port: other.nodePort };
    await expectAnswers(node, { ...atOther, port: held.nodePort }, attacked);
    const script = await startProgram(attacked, "half-open", String(CONNECTIONS), String(held.nodePort));
    const refused = await untilRefused(attacked);
    await expectAnswers(node, atOther, attacked);
    const meanwhile = await attacked.change("meanwhile");
    await script.stop();
    return { refused, meanwhile };
  },
});

/** Resolves when relays have refused clients because of a limit. */
async function untilRefused({ node }: Attacked): Promise<string> {
  let refused = "";
  await until("refused clients of a relay", async () => {
    const metrics = await node.agent.get("/metrics");
    const limits = /^fairlead_relay_refused_total\{reason="\w+-limit"\} ([1-9]\d*)$/m;
    refused = limits.exec(metrics)?.[1] ?? "";
    return refused === "" ? "none" : undefined;
  });
  return refused;
}

/** What the lock was once: a socket of this name in the abstract namespace. */
const NAME = "fairlead-proxy";

const squatted: Spec = underAttack({
  name: "attack: a user without rights is there first, where the node's lock is",
  start: async (attacked) => {
    const { node } = attacked;
    const files = await lockFiles(node);
    await node.agent.kill();
    const script = await startProgram(attacked, "squat", NAME, ...files);
    const opened = await script.ask("opened");
    if (opened !== "")
      throw new Error(`wanted no lock that every user can hold; a process without rights opened ${opened}`);
    await node.run([process.execPath, "--no-warnings", agentFile(), "--cleanup"]);
    return {};
  },
  act: async (attacked) => ({ meanwhile: await attacked.change("meanwhile") }),
});

const heldOpen: readonly Spec[] = [
  squatted,
  held("the lock's socket", "fairlead"),
  held("the health and the metrics port", "10256", "10249"),
  relayed,
];

const OPEN_MS = 2_000;

const inspector: Spec = underAttack({
  name: "attack: SIGUSR1, by which Node would open its inspector",
  act: async ({ node, change }) => {
    process.kill(able(node.agent.pid)(), "SIGUSR1");
    await sleep(OPEN_MS);
    const { stdout } = await node.run(["ss", "-Hltnp", "sport", "=", ":9229"]);
    if (stdout !== "") throw new Error(`wanted no inspector; there listens ${stdout}`);
    return { meanwhile: await change("meanwhile") };
  },
});

const HELD_MS = 3_000;

/** Files that the agent's process has open and that are locks by their name. */
async function lockFiles({ agent }: ClusterNode): Promise<readonly string[]> {
  const folder = `/proc/${able(agent.pid)()}/fd`;
  const names = await readdir(folder);
  const files = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => "")));
  return files.filter((file) => file.endsWith(".lock"));
}

/** @param to ports, or a part of the names of unix sockets */
function held(where: string, ...to: readonly string[]): Spec {
  return underAttack({
    name: `attack: ${CONNECTIONS.toLocaleString("en")} connections held at ${where}, where 1,024 files may be open`,
    start: () => ({ openFiles: 1_024 }),
    act: async (attacked) => {
      const script = await startProgram(attacked, "half-open", String(CONNECTIONS), ...to);
      await sleep(HELD_MS);
      const meanwhile = await attacked.change("meanwhile");
      const open = await script.ask("open");
      await script.stop();
      return { open, meanwhile };
    },
  });
}

/**
 * Stands before the tool of its own name: the order in a file alongside it counts for one call (stop) or for all (lie).
 */
const TOOL = `#!/bin/sh
here=$(dirname "$0")
order=
[ -e "$here/order" ] && read -r order <"$here/order"
case $order in
stop) rm "$here/order"; echo $$ >"$here/stopped"; kill -STOP $$ ;;
lie) cat >/dev/null; exit 0 ;;
esac
PATH=\${PATH#*:} exec "$(basename "$0")" "$@"
`;

const programs = ["iptables", "ip6tables"].flatMap((tool) =>
  ["restore", "nft-restore", "legacy-restore"].map((rest) => `${tool}-${rest}`),
);
/** How long a tool may be waited for, and its failure be reported. */
const NOTICED_MS = 45_000;

async function toolFolder({ later }: Scene): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-`));
  later(async () => {
    await endStopped(join(folder, "stopped"));
    await rm(folder, { recursive: true, force: true });
  });
  for (const program of programs) {
    await writeFile(join(folder, program), TOOL);
    await chmod(join(folder, program), 0o755);
  }
  return folder;
}

/**
 * Ends a process that the agent has not ended. @param file has the number of the process that was stopped, if any
 */
async function endStopped(file: string): Promise<void> {
  const pid = Number(await readFile(file, "utf8").catch(() => "0"));
  const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // Stopped (proc(5)): no other program has its number.
  if (pid > 0 && / T /.test(state)) process.kill(pid, "SIGKILL");
}

function misbehaving(
  order: "stop" | "lie",
  name: string,
  act: (attacked: Attacked, file: string) => Promise<Figures>,
): Spec {
  const folders = new WeakMap<Scene, string>();
  return underAttack({
    name: `attack: ${name}`,
    unfit: notIn(["nftables"], "nftables mode starts none of these tools"),
    mayBeUnwell: true,
    start: async ({ scene }) => {
      const folder = await toolFolder(scene);
      folders.set(scene, folder);
      return { env: { PATH: `${folder}:${process.env["PATH"]}` } };
    },
    act: async (attacked) => {
      const file = join(folders.get(attacked.scene) ?? "", "order");
      await writeFile(file, `${order}\n`);
      return act(attacked, file);
    },
  });
}

const stopped = misbehaving("stop", "iptables-restore is stopped for good (SIGSTOP)", async (attacked) => ({
  meanwhile: await attacked.change("meanwhile", NOTICED_MS),
}));

const lying = misbehaving("lie", "iptables-restore does nothing and says that it did", async (attacked, file) => {
  const before = await attacked.node.agent.log();
  const served = attacked.change("meanwhile", 2 * NOTICED_MS);
  // Waited for below, unless nothing is reported.
  served.catch(() => {});
  const reported = await untilLogged(attacked.node, before, /^E/, NOTICED_MS);
  await rm(file);
  return { reported, meanwhile: await served };
});

const badTools: readonly Spec[] = [stopped, lying];

/** What others do to an agent on purpose, or could. */
export const attacks: readonly Spec[] = [
  datagrams,
  ...heldOpen,
  inspector,
  silent,
  claims,
  manyEndpoints,
  otherWriters,
  ...badTools,
];
