import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { requireAgent, settleAgent } from "@fairlead/lab/agent";
import { kubeconfig } from "@fairlead/lab/control-plane/control-plane";
import { kubeProxyProgram } from "@fairlead/lab/control-plane/programs";
import { countIn } from "@fairlead/lab/qemu/boot";
import { guestKernel } from "@fairlead/lab/qemu/kernel";
import type { KernelVersion } from "@fairlead/lab/qemu/kernel-versions";
import { folderPrefix } from "@fairlead/lab/support/run-inventory";
import { bundleScript } from "@fairlead/tooling/bundle";
import { execa } from "execa";
import { IPTABLES_GUEST } from "../cost/iptables.ts";
import { LINKS, networkLines } from "./ground.ts";
import { configText, kubeProxyConfigText, movingText, objectsText, TARGETS } from "./objects.ts";

/** The built agent on a kernel of Debian, with real packets, and the real kube-proxy that may take its place. */

export const KUBE_PROXY = "v1.37";
const SCHEMA = "kubernetes.proto";

/** Of both programs of the test, several proxies and what they are unpacked from. */
const MEMORY_MIB = 1_536;

/** `fast` is the configuration with the fast path, `slow` the one without. */
export type Configuration = "slow" | "fast";

/** Of the service whose endpoints change. */
export const STATES = 3;

const MODULES = [
  ...["veth", "sctp", "nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nf_flow_table", "nf_flow_table_inet"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "fib_ipv6", "reject_ipv4", "reject_ipv6"].map(
    (name) => `nft_${name}`,
  ),
  ...["nft_reject_inet", "nft_fib_inet", "nft_flow_offload", "bridge"],
  ...(IPTABLES_GUEST.modules ?? []),
  ...["xt_sctp", "ip6_tables", "ip6table_nat", "ip6table_filter", "ip6table_mangle", "ip6t_REJECT"],
];

/** Named by the machine's own names for them: iptables has the legacy variant only. */
const PROGRAMS = [
  ...["nft", "ip", "conntrack", "nfacct", "setpriv"],
  ...["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((end) => `${tool}-legacy${end}`)),
];

/** Counts what rules see of packets that the node forwards. */
export const SPY = "table inet spy { chain forward { type filter hook forward priority 0; counter; }; }";

/**
 * Runs a script next to servers. It has the functions of `functions.sh`, and the files `objects`, `moving-0` … and
 * the configurations in /guest; agents follow /tmp/objects.
 *
 * @returns what it printed
 * @throws Error where there is no built agent, kube-proxy cannot be had, or the script failed
 */
export async function runInGuest(version: KernelVersion, lines: readonly string[]): Promise<string> {
  await requireAgent();
  const kubeProxy = await kubeProxyProgram(KUBE_PROXY, () => {});
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-fast-path-`));
  try {
    const agent = join(folder, "agent");
    await settleAgent(agent);
    const talk = join(folder, "talk");
    await execa("gcc", ["-O2", "-static", "-o", talk, besides("talk.c")]);
    const api = join(folder, "api");
    await bundleApi(api);
    const programs = [talk, process.execPath, kubeProxy, ...(await Promise.all(PROGRAMS.map(pathOf)))];
    const script = [
      await readFile(besides("functions.sh"), "utf8"),
      ...networkLines(),
      `on_node nft '${SPY}'`,
      ...Object.entries(TARGETS).flatMap(([protocol, port]) =>
        [LINKS.server, LINKS.client].map(
          ({ namespace, others: { IPv4, IPv6 } }) =>
            `serve ${namespace} ${protocol} ${port} ${[...IPv4, ...IPv6].join(" ")}`,
        ),
      ),
      "mkdir -p /tmp/objects && cp /guest/objects /tmp/objects/objects.yaml",
      ...lines,
    ].join("\n");
    const { libraries = [] } = IPTABLES_GUEST;
    const guest = { memoryMiB: MEMORY_MIB, modules: MODULES, programs, libraries, folders: { agent, api } };
    return await countIn({ ...guest, kernel, files: files(), script });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What takes long the first time: guests that start at the same time would each make it. */
export async function provideGuest(version: KernelVersion): Promise<void> {
  await kubeProxyProgram(KUBE_PROXY, () => {});
  await guestKernel(version);
}

/** The API server that kube-proxy in a guest follows, as `api.mjs` in this folder. */
export async function bundleApi(folder: string): Promise<void> {
  await bundleScript({ api: besides("api-main.ts") }, folder);
  // It reads this next to itself.
  await copyFile(
    join(fileURLToPath(import.meta.resolve("@fairlead/testkit/api-server")), "../protobuf", SCHEMA),
    join(folder, SCHEMA),
  );
}

function files(): Readonly<Record<string, string>> {
  const devices = Object.values(LINKS).map(({ device }) => device);
  const states = Array.from({ length: STATES }, (_, without) => [`moving-${without}`, movingText(without)]);
  return {
    objects: objectsText(),
    ...Object.fromEntries(states),
    slow: configText({}),
    fast: configText({ devices: [...devices, "cali*"] }),
    auto: configText({ devices: "auto" }),
    iptables: configText({ mode: "iptables" }),
    // Where the API server listens is known once it does.
    kubeconfig: kubeconfig({ server: "SERVER" }),
    "kube-proxy": kubeProxyConfigText("/tmp/kubeconfig"),
  };
}

function besides(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

async function pathOf(program: string): Promise<string> {
  const { stdout } = await execa("which", [program], { env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
  return stdout.trim();
}
