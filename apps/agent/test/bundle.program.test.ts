import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, createRunner } from "@fairlead/kernel";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** The bundle in a folder of its own: nothing but Node alongside it. */
let dir = "";
const bundle = () => join(dir, "main.js");

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-bundle-"));
  await copyFile(join(import.meta.dirname, "..", "dist", "main.js"), bundle());
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

interface Answer {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function proxy(...args: string[]): Promise<Answer> {
  try {
    const { stdout, stderr } = await createRunner().run([process.execPath, bundle(), ...args]);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === undefined) throw error;
    return { code: error.exitCode, out: "", err: error.stderr };
  }
}

describe("the bundle", () => {
  test("its text takes one byte a letter in memory, and nothing of it has Node load its HTTP client", async () => {
    const text = await readFile(bundle(), "utf8");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
    expect(/[^\x00-\x7f]/.exec(text)?.[0]).toBeUndefined();
    expect(text).not.toMatch(/from\s*"(?:node:)?http"/);
  });

  test("nothing of the Kubernetes client library is in it", async () => {
    expect(await readFile(bundle(), "utf8")).not.toContain("kubernetes-client-javascript");
  });

  test("its first line is for any Node and any env, and the inspector's signal is taken at once", async () => {
    const lines = (await readFile(bundle(), "utf8")).split("\n").slice(0, 4);
    expect(lines[0]).toBe("#!/usr/bin/env node");
    expect(lines[3]).toMatch(/^process\.on\("SIGUSR1"/);
  });

  test("--version", async () => {
    const { version } = JSON.parse(await readFile(join(import.meta.dirname, "..", "package.json"), "utf8"));
    expect(await proxy("--version")).toEqual({ code: 0, out: `Fairlead v${version}\n`, err: "" });
  });

  test("--help names its flags", async () => {
    const { code, out } = await proxy("--help");
    expect(code).toBe(0);
    for (const flag of ["--config", "--exclude-cluster-cidr", "--manifests", "--proxy-mode", "--cleanup"]) {
      expect(out).toContain(flag);
    }
  });

  test("an unknown flag is exit 2 and usage", async () => {
    const { code, err } = await proxy("--clusterr-cidr=10.0.0.0/8");
    expect(code).toBe(2);
    expect(err).toMatch(/unknown flag.*--clusterr-cidr/);
    expect(err).toContain("Usage: fairlead-proxy [flags]");
  });

  test.each([
    [
      "host bits",
      ["--exclude-cluster-cidr=10.244.1.0/16"],
      /^--exclude-cluster-cidr=10\.244\.1\.0\/16: .*10\.244\.0\.0\/16$/,
    ],
    ["a whole family", ["--exclude-cluster-cidr=::/0"], /^--exclude-cluster-cidr=::\/0: .*IPv6/],
    [
      "no CIDR",
      ["--exclude-cluster-cidr=ovn"],
      /^--exclude-cluster-cidr=ovn: must be a CIDR, such as 10\.244\.0\.0\/16/,
    ],
    [
      "IPv4-mapped",
      ["--exclude-cluster-cidr=::ffff:10.244.0.0/112"],
      /^--exclude-cluster-cidr=\S+: .*10\.244\.0\.0\/16/,
    ],
    [
      "all of the cluster's",
      ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.144.0.0/16"],
      /^--exclude-cluster-cidr=10\.144\.0\.0\/16: covers all of --cluster-cidr 10\.144\.0\.0\/16/,
    ],
    [
      "a mode that is not there",
      ["--proxy-mode=kernelspace"],
      /^--proxy-mode=kernelspace: only works on Windows; must be iptables, ipvs, nftables or userspace/,
    ],
    ["a wrong value", ["--oom-score-adj=2000"], /^--oom-score-adj=2000: /],
    [
      "manifests that are a device",
      ["--manifests=/dev/zero"],
      /^--manifests=\/dev\/zero: is neither a file nor a folder$/,
    ],
    ["no kubeconfig", ["--kubeconfig=/does/not/exist"], /\/does\/not\/exist/],
  ])("%s is exit 1 and says what would be right", async (_what, flags, message) => {
    const { code, err } = await proxy("--manifests=/does/not/exist", ...flags, ...withoutManifests(flags));
    expect(err.split("\n").filter((line) => message.test(line))).toHaveLength(1);
    expect(code).toBe(1);
  });

  test("a kubeconfig that starts programs is refused, unless that is allowed", async () => {
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "/does/not/exist" };
    const named = (name: string, value: object) => ({ name: "n", [name]: value });
    const kubeconfig = {
      clusters: [named("cluster", { server: "https://192.0.2.1:6443" })],
      users: [named("user", { exec })],
      contexts: [named("context", { cluster: "n", user: "n" })],
      "current-context": "n",
    };
    await writeFile(join(dir, "kubeconfig"), JSON.stringify(kubeconfig));
    const { code, err } = await proxy(`--kubeconfig=${join(dir, "kubeconfig")}`);
    expect(err).toMatch(/users\[\]\.user\.exec .* --allow-exec-credentials allows/);
    expect(code).toBe(1);
  });

  test("every wrong CIDR is told at once", async () => {
    const { code, err } = await proxy("--exclude-cluster-cidr=10.244.1.0/16,fd00::1/64");
    expect(code).toBe(1);
    expect(err.trim().split("\n")).toHaveLength(2);
  });

  test("the founding case's configuration is read and written back", async () => {
    await writeFile(join(dir, "config.conf"), FOUNDING_CONFIG);
    const { code } = await proxy(`--config=${join(dir, "config.conf")}`, `--write-config-to=${join(dir, "out.yaml")}`);
    expect(code).toBe(0);
    const text = await readFile(join(dir, "out.yaml"), "utf8");
    expect(text).toContain("clusterCIDR: 10.144.0.0/16");
    expect(text).toContain("mode: iptables");
  });
});

/** An empty --manifests takes the one before it back, where the API server is what is tested. */
function withoutManifests(flags: readonly string[]): string[] {
  return flags.some((flag) => flag.startsWith("--kubeconfig")) ? ["--manifests="] : [];
}

const FOUNDING_CONFIG = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
clientConnection: {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: 10.144.0.0/16
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null}
iptables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", trictARP: false, syncPeriod: 0s}
metricsBindAddress: ""
mode: "iptables"
nodePortAddresses: null
udpIdleTimeout: 0s
`;
