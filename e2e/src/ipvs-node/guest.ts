import { mkdtemp, readFile, rm } from "node:fs/promises";
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
import { execa } from "execa";
import { IPVS_GUEST } from "../cost/ipvs.ts";
import { bundleApi, KUBE_PROXY } from "../fast-path/guest.ts";
import { ENDPOINTS, networkLines } from "./ground.ts";
import { configText, kubeProxyConfigText, objectsText, PROTOCOLS, SERVICES, storageText } from "./objects.ts";

const MODULES = [
  ...["veth", "nf_tables", "nf_conntrack", "nf_conntrack_netlink"],
  ...["chain_nat", "nat", "masq", "ct", "numgen", "hash", "fib_ipv4", "fib_ipv6", "reject_ipv4", "reject_ipv6"].map(
    (name) => `nft_${name}`,
  ),
  ...(IPVS_GUEST.modules ?? []),
  ...["ip6_tables", "ip6table_nat", "ip6table_filter", "ip6table_mangle", "ip6t_REJECT"],
];

const PROGRAMS = [
  ...["nft", "ip", "conntrack", "nfacct", "ipset", "ipvsadm"],
  ...["iptables", "ip6tables"].flatMap((tool) => ["", "-save", "-restore"].map((end) => `${tool}-legacy${end}`)),
];

const MEMORY_MIB = 1_536;

/**
 * Runs a script on a kernel of Debian, which has IPVS, next to pods that answer. It has the functions of
 * `functions.sh`; agents follow /tmp/objects, and what they need is in /guest.
 *
 * @returns what it printed
 * @throws Error where there is no built agent, kube-proxy cannot be had, or the script failed
 */
export async function runInGuest(version: KernelVersion, lines: readonly string[]): Promise<string> {
  await requireAgent();
  const kubeProxy = await kubeProxyProgram(KUBE_PROXY, () => {});
  const kernel = await guestKernel(version);
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}-ipvs-`));
  try {
    const agent = join(folder, "agent");
    await settleAgent(agent);
    const api = join(folder, "api");
    await bundleApi(api);
    const talk = join(folder, "talk");
    await execa("gcc", ["-O2", "-static", "-o", talk, fileOf("../fast-path/talk.c")]);
    const programs = [talk, process.execPath, kubeProxy, ...(await Promise.all(PROGRAMS.map(pathOf)))];
    const script = [
      await readFile(fileOf("functions.sh"), "utf8"),
      ...networkLines(),
      ...PROTOCOLS.flatMap((protocol) => [
        serveLine(protocol, SERVICES.web.targetPort, "eth0"),
        serveLine(protocol, SERVICES.storage.targetPort, "net1"),
      ]),
      "mkdir -p /tmp/objects && cp /guest/objects /tmp/objects/objects.yaml",
      ...lines,
    ].join("\n");
    const { libraries = [] } = IPVS_GUEST;
    const guest = { memoryMiB: MEMORY_MIB, modules: MODULES, programs, libraries, folders: { agent, api } };
    return await countIn({ ...guest, kernel, files: FILES, script });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const FILES = {
  objects: objectsText(),
  "storage-both": storageText([0, 1]),
  "storage-one": storageText([0]),
  "storage-other": storageText([1]),
  plain: configText({}),
  "reply-via": configText({ replyVia: "auto" }),
  // Where the API server listens is known once it does.
  kubeconfig: kubeconfig({ server: "SERVER" }),
  "kube-proxy": kubeProxyConfigText("/tmp/kubeconfig"),
};

/** Pods answer on one interface only. */
function serveLine(protocol: string, port: number, device: keyof typeof ENDPOINTS): string {
  const { IPv4, IPv6 } = ENDPOINTS[device];
  return `talk serve pods ${protocol} ${port} ${[...IPv4, ...IPv6].join(" ")} &`;
}

function fileOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

async function pathOf(program: string): Promise<string> {
  const { stdout } = await execa("which", [program], { env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` } });
  return stdout.trim();
}
