import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { isNowInPlace, onBundleNode, pidOf } from "./support/bundle-node.ts";

const agentDir = join(import.meta.dirname, "..");

onBundleNode("the bundle on a real kernel", ({ dir, inside, manifest, running, toEnd, served }) => {
  beforeAll(async () => manifest("web.yaml", await readmeBlock("yaml")));

  const nat = async () => (await inside().run(["iptables-save", "-t", "nat"])).stdout;

  /** Asks from inside the namespace: the ports are on its loopback interface. */
  async function ask(url: string): Promise<string> {
    const script = `fetch(${JSON.stringify(url)}).then(async (a) => console.log(a.status, (await a.text()).trim()))`;
    return (await inside().run([process.execPath, "-e", script])).stdout.trim();
  }

  test("the README's example: serves, follows, guards the node, stops and cleans up", async () => {
    const [, ...flags] = (await readmeBlock("sh", /^fairlead-proxy --manifests/)).trim().split(/\s+/);
    await served(flags, async (log) => {
      await checkServing();
      await checkGuarded(pidOf(log));
      await checkRepairing(pidOf(log));
    });
    expect(await nat()).toContain("KUBE-SVC-RH2G6EKXTJDCSNM7");
    expect(JSON.parse(await readFile(join(dir(), "state", "ownership.json"), "utf8"))).toMatchObject({
      services: { "default/nginx-calico": { IPv4: "ours" } },
    });

    expect((await toEnd(["--cleanup"])).at(-1)).toBe("exit 0");
    expect(await nat()).not.toContain("KUBE-");
  });

  async function checkServing(): Promise<void> {
    expect(await nat()).toContain("--to-destination 10.144.154.71:80");
    expect(await ask("http://127.0.0.1:10249/proxyMode")).toBe("200 iptables");
    // The other family's first rules may come later.
    await expect
      .poll(() => ask("http://127.0.0.1:10256/healthz"))
      .toMatch(/^200 \{"lastUpdated":.*"nodeEligible":true,"healthy":true/);
    expect(await ask("http://127.0.0.1:10249/ownership")).toContain('"service": "default/nginx-calico"');
    expect(await ask("http://127.0.0.1:10249/metrics")).toContain(
      'fairlead_services{ip_family="IPv4",ownership="ours"} 1',
    );
  }

  /** Neither a second agent nor a clean-up may work alongside it. */
  async function checkGuarded(pid: number): Promise<void> {
    for (const args of [["--cleanup"], ["--manifests=manifests"]]) {
      const said = await toEnd(args);
      expect(said.at(-1)).toBe("exit 1");
      expect(said.join("\n")).toContain(`another agent runs on this node: process ${pid} `);
    }
  }

  /** What checks for itself every half minute at most is repaired at once on request. */
  async function checkRepairing(pid: number): Promise<void> {
    const rule = (await nat()).split("\n").find((line) => line.startsWith("-A KUBE-SERVICES -d 10.96.67.75/32"));
    if (rule === undefined) throw new Error("the service has no rule");
    // The tool fails where the rule is not there.
    await inside().run(["iptables-restore", "--noflush"], { input: `*nat\n${rule.replace("-A", "-D")}\nCOMMIT\n` });
    process.kill(pid, "SIGUSR2");
    await expect.poll(nat).toContain(rule);
  }

  /** The mode's table of IPv4; empty: there is none. */
  const nftTable = async () =>
    (await inside().run(["sh", "-c", "nft list table ip kube-proxy 2>/dev/null || true"])).stdout;

  test("in nftables mode: takes over from iptables mode, repairs at once, and cleans up; nothing of it takes nft", async () => {
    // What the image has of tools may lack nft; an agent that started it would find this.
    await mkdir(join(dir(), "bin"), { recursive: true });
    await writeFile(join(dir(), "bin", "nft"), "#!/bin/sh\necho started >> nft-was-started\nexit 1\n", { mode: 0o755 });
    const withoutNft = ["env", `PATH=${join(dir(), "bin")}:${process.env["PATH"]}`];
    await served(["--manifests=manifests", "--state-dir=state"]);
    expect(await nat()).toContain("KUBE-SERVICES");
    const flags = ["--proxy-mode=nftables", "--manifests=manifests", "--state-dir=state", "-v=2"];
    const meanwhile = async () => {
      await expect.poll(nat).not.toContain("KUBE-SERVICES");
      expect(await ask("http://127.0.0.1:10249/proxyMode")).toBe("200 nftables");
      const before = await nftTable();
      expect(before).toContain("10.144.154.71");
      for (const _ of ["once", "twice"]) {
        await inside().run(["nft", "flush", "ruleset"]);
        await expect.poll(nftTable).toBe(before);
      }
    };
    const log = await served(flags, meanwhile, withoutNft);
    const warned = log.filter((line) => line.includes("differ"));
    expect(warned.length).toBeGreaterThan(0);
    for (const line of warned) expect(line).toMatch(/differs="the table is missing" by="nft \(\d+\)"/);
    expect(await nftTable()).toContain("10.144.154.71");
    expect((await toEnd(["--cleanup"], withoutNft)).at(-1)).toBe("exit 0");
    expect(await nftTable()).toBe("");
    await expect(readFile(join(dir(), "nft-was-started"))).rejects.toThrow("ENOENT");
  });

  test("--service-metrics: connections of a service by endpoint, from the kernel's own tracking", async () => {
    await track("10.96.67.75", "20001");
    await track("10.96.67.76", "20002");
    await served(["--manifests=manifests", "--state-dir=state", "--service-metrics=default"], async () => {
      const metrics = (await ask("http://127.0.0.1:10249/metrics")).split("\n");
      expect(metrics.filter((one) => one.startsWith("fairlead_service_connections"))).toEqual([
        'fairlead_service_connections{namespace="default",service="nginx-calico",port="",endpoint="10.144.154.71:80"} 1',
        "fairlead_service_connections_left_out 0",
        "fairlead_service_connections_blind 0",
      ]);
    });
    await toEnd(["--cleanup"]);
  });

  /** An entry as if a client had called port 80 of an address, and the kernel had translated that. */
  async function track(called: string, from: string): Promise<void> {
    const [client, endpoint] = ["10.144.9.9", "10.144.154.71"];
    await inside().run([
      "conntrack",
      ...["-I", "-p", "tcp", "-t", "1000", "--state", "ESTABLISHED"],
      ...["-s", client, "-d", called, "--sport", from, "--dport", "80"],
      ...["-r", endpoint, "-q", client, "--reply-port-src", "80", "--reply-port-dst", from],
    ]);
  }

  test("a changed configuration file ends it with exit 1", async () => {
    const file = join(dir(), "config.conf");
    const config =
      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.144.0.0/16\n";
    await writeFile(file, config);
    const log: string[] = [];
    for await (const line of running([`--config=${file}`, "--manifests=manifests", "--state-dir=state", "-v=2"])) {
      log.push(line);
      if (isNowInPlace(log)) await writeFile(file, `${config}mode: iptables\n`);
    }
    expect(log.at(-1)).toBe("exit 1");
    expect(log.at(-2)).toContain("the configuration file changed");
    await toEnd(["--cleanup"]);
  });

  test("an API server that is a Service which nothing serves yet: the log says what it needs, and it keeps trying", async () => {
    const log: string[] = [];
    for await (const line of running(["--master=https://10.96.0.1:443", "--state-dir=state"])) {
      log.push(line);
      if (line.includes("API server cannot be reached")) process.kill(pidOf(log), "SIGTERM");
    }
    expect(log.filter((line) => line.includes("cannot be reached"))).toEqual([
      expect.stringMatching(/server="https:\/\/10\.96\.0\.1".*10\.96\.0\.1 may be.*needs the API server's own address/),
    ]);
    expect(log.at(-1)).toBe("exit 0");
    expect(await nat()).not.toContain("KUBE-");
  });

  test("--init-only does the privileged part and ends", async () => {
    const log = await toEnd(["--init-only"]);
    expect(log.at(-1)).toBe("exit 0");
    expect(log.at(-2)).toContain("System initialized and --init-only specified");
    expect(await nat()).not.toContain("KUBE-");
  });
});

async function readmeBlock(language: string, begins = /^/): Promise<string> {
  const readme = await readFile(join(agentDir, "README.md"), "utf8");
  const blocks = [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(
    ([, text = ""]) => text,
  );
  const block = blocks.find((text) => begins.test(text));
  if (block === undefined) throw new Error(`the README has no such ${language} block`);
  return block;
}
