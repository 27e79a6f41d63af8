import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { INSPECTOR_OPTION } from "@fairlead/tooling/agent-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentVersion } from "../src/agent-version.ts";
import { AGENT_NAMES, CLI_NAME } from "../src/image/agent-layer.ts";
import { ownArch } from "../src/image/arch.ts";
import { COMPILED_CODE } from "../src/image/config.ts";
import { artifactsDir } from "../src/paths.ts";
import { unpackImage } from "./unpack.ts";

/**
 * An image, run as hardened as the manifests have it: the one of `pnpm image`, or the OCI archive that FAIRLEAD_IMAGE
 * names. Needs root.
 */
let scratch = "";
let root = "";
let namespace: NetworkNamespace;
const script = join(import.meta.dirname, "in-container.sh");

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "fairlead-image-"));
  const [image, manifests] = [join(scratch, "image"), join(scratch, "manifests")];
  for (const folder of [image, manifests]) await mkdir(folder);
  const own = join(artifactsDir, `image/fairlead-${await agentVersion()}.oci.tar`);
  const { FAIRLEAD_IMAGE: archive = own } = process.env;
  root = await unpackImage(createRunner(), archive, image, ownArch());
  await writeFile(join(manifests, "web.json"), JSON.stringify(OBJECTS));
  namespace = await createNamespace();
});
afterAll(async () => {
  await namespace?.dispose();
  await rm(scratch, { recursive: true, force: true });
});

const inContainer = (...argv: readonly string[]) =>
  [script, root, join(scratch, "manifests"), ...argv] as const satisfies readonly [string, ...string[]];
const runner = () => createRunner({ prefix: namespace.argvPrefix, env: { NODE_EXTRA_CA_CERTS: "" } });
const run = async (...argv: readonly string[]) => (await runner().run(inContainer(...argv))).stdout;

describe("the image", () => {
  test.each(AGENT_NAMES)("%s is the agent", async (name) => {
    expect(await run(name, "--version")).toBe(`Fairlead v${await agentVersion()}\n`);
  });

  test.each(["fairlead", "fairlead-cli"])("%s speaks netlink, without a tool in between", async (folder) => {
    const koffi = `/usr/local/lib/${folder}/koffi-${ownArch() === "amd64" ? "linux-x64" : "linux-arm64"}.node`;
    const load = `typeof require(${JSON.stringify(koffi)}).load`;
    expect(await run("/usr/local/bin/node", "-p", load)).toBe("function\n");
  });

  test("compiled code that was made as the Dockerfile does is taken on a read-only root", async () => {
    const building = { env: { NODE_COMPILE_CACHE: COMPILED_CODE, NODE_OPTIONS: INSPECTOR_OPTION } };
    await createRunner(building).run(["chroot", root, AGENT_NAMES[0], "--version"]);
    const running = createRunner({
      prefix: namespace.argvPrefix,
      env: { ...building.env, NODE_DEBUG_NATIVE: "COMPILE_CACHE" },
    });
    const { stdout } = await running.run(inContainer(AGENT_NAMES[0], "--version"));
    expect(stdout).toMatch(/code cache for ESM file:\/\/\/usr\/local\/lib\/fairlead\/main\.js was accepted/);
  });

  test("the command line tool is beside it", async () => {
    const flags = ["-f", "/home", "--cluster-cidr", "10.144.0.0/16"];
    expect(await run(CLI_NAME, "ownership", ...flags)).toContain("default/nginx-calico");
  });

  test.each([
    ["iptables-nft", "--version"],
    ["iptables-legacy", "--version"],
    ["ip6tables-nft-restore", "--version"],
    ["ip6tables-legacy-save", "--version"],
    ["iptables", "--version"],
    ["ipset", "--version"],
    ["ip", "-V"],
    ["conntrack", "--version"],
    ["nfacct", "version"],
    ["modprobe", "--version"],
  ])("%s is there with its libraries", async (program, flag) => {
    expect(await run(program, flag)).toMatch(/v?\d+\.\d+|kmod version \d+|iproute2-/);
  });

  test("serves with two capabilities on a read-only root", async () => {
    const status = await run("/usr/local/bin/node", "-p", 'fs.readFileSync("/proc/self/status", "utf8")');
    // NET_ADMIN, NET_RAW and SYS_CHROOT.
    expect(status).toMatch(/^CapEff:\t0000000000043000$/m);
    await addNode(namespace);
    const stop = new AbortController();
    const flags = ["--manifests=/home", "--cluster-cidr=10.144.0.0/16", "--hostname-override=node-a", "-v=2"];
    const log: string[] = [];
    const agent = runner().stream(inContainer(AGENT_NAMES[1], ...flags), { signal: stop.signal, timeoutMs: 0 });
    for await (const line of lines(agent)) {
      log.push(line);
      if (line.includes('"Rules are in place" ipFamily="IPv4"')) break;
    }
    expect(log.join("\n")).toContain('"Rules are in place" ipFamily="IPv4"');
    const rules = await run("iptables-nft", "-t", "nat", "-S", "KUBE-SVC-RH2G6EKXTJDCSNM7");
    expect(rules).toContain("-j KUBE-SEP-ZMODNQBWAQHJ2KQZ");
  });
});

/** An address and a way out that ends in the namespace. */
async function addNode({ argvPrefix }: NetworkNamespace): Promise<void> {
  const outside = createRunner({ prefix: argvPrefix });
  for (const command of [
    "link add eth0 type veth peer name eth0-end",
    "link set eth0 up",
    "link set eth0-end up",
    "address add 192.0.2.10/24 dev eth0",
    "route add default via 192.0.2.1",
  ]) {
    await outside.run(["ip", ...command.split(" ")]);
  }
}

const OBJECTS = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "nginx-calico", namespace: "default" },
    spec: { clusterIP: "10.96.67.75", ports: [{ port: 80 }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "nginx-calico-1",
      namespace: "default",
      labels: { "kubernetes.io/service-name": "nginx-calico" },
    },
    addressType: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ addresses: ["10.144.154.71"] }],
  },
];
