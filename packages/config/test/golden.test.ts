import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse as parseYAML } from "yaml";
import { FLAGS } from "../src/flags.ts";
import { configOf, FILE, fixture, parse, parseFile } from "./parse.ts";

/**
 * The fixtures are what kube-proxy v1.37.1 wrote with --write-config-to, for its defaults and for files and flags, and
 * its flags.
 */
describe("as kube-proxy v1.37.1", () => {
  test.each(["iptables", "ipvs", "nftables"])("--write-config-to writes the same file, %s", (mode) => {
    const { action } = configOf(parse([`--proxy-mode=${mode}`, "--write-config-to=/tmp/out"]));
    expect(action).toEqual({ kind: "write-config", path: "/tmp/out", text: fixture(`defaults-${mode}.yaml`) });
  });

  test.each(["iptables", "ipvs", "nftables"])("the file that it wrote says the same again, %s", (mode) => {
    const file = fixture(`defaults-${mode}.yaml`);
    const result = parse([`--config=${FILE}`, "--write-config-to=/tmp/out"], file);
    expect(result).toMatchObject({ warnings: [], config: { action: { text: file } } });
  });

  const recorded = readdirSync(new URL("fixtures/recorded/", import.meta.url));
  const names = (suffix: string) =>
    recorded.filter((name) => name.endsWith(suffix)).map((name) => name.replace(suffix, ""));

  test.each(names(".in.yaml"))("%s: the file means the same", (name) => {
    const { kubeProxyConfiguration } = configOf(parse([`--config=${FILE}`], fixture(`recorded/${name}.in.yaml`)));
    expect(kubeProxyConfiguration).toEqual(parseYAML(fixture(`recorded/${name}.out.yaml`)));
  });

  test.each(names(".args"))("%s: the flags mean the same", (name) => {
    const { kubeProxyConfiguration } = configOf(parse(fixture(`recorded/${name}.args`).trimEnd().split("\n")));
    expect(kubeProxyConfiguration).toEqual(parseYAML(fixture(`recorded/${name}.out.yaml`)));
  });

  const flags = fixture("flags.tsv")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  test.each(flags.filter(([name]) => name !== "--help"))(
    "%s has the type %j and the default %j",
    (name, type, value) => {
      const flag = FLAGS.get(name?.slice(2) ?? "");
      expect(flag?.type.placeholder.replace("[=true]", "")).toBe(type);
      expect(flag?.default ?? "").toBe(name === "--ipvs-scheduler" ? "rr" : (value ?? "").replaceAll('"', ""));
    },
  );

  test("no more flags than these, those of old and of Windows, and Fairlead's own", () => {
    const theirs = new Set(flags.map(([name]) => name));
    const others = [...FLAGS.values()].filter(({ name }) => !theirs.has(`--${name}`));
    expect(
      others
        .filter(({ row }) => row.group !== "windows" && row.deprecated === undefined)
        .map((flag) => flag.name)
        .sort(),
    ).toEqual([
      "allow-exec-credentials",
      "cidr-removal-delay",
      "cluster-cidr-from",
      "exclude-cidrs-from",
      "exclude-cluster-cidr",
      "excluded-frontends",
      "ipvs-fallback",
      "manifests",
      "masquerade-to-excluded",
      "mixed-services",
      "ownership-annotation",
      "proxy-port-range",
      "reset-stale-tcp",
      "service-metrics",
      "service-metrics-max-series",
      "service-network",
      "service-proxy-name",
      "state-dir",
      "udp-timeout",
      "userspace-max-sockets",
      "userspace-max-sockets-per-service",
      "userspace-only",
      "userspace-tcp-idle-timeout",
    ]);
  });
});

/** What kube-proxy v1.37.1 said to files with these lines (`--config`, `--write-config-to`). */
const recorded: { readonly verdicts: readonly { readonly lines: string; readonly verdict: "accepts" | "refuses" }[] } =
  JSON.parse(fixture("verdicts.json"));

/** Where ours is another one, and why. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "bindAddress: 10.0.0.01": "kube-proxy takes a leading zero for decimal, others for octal",
  "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: a name with spaces}":
    "no interface can have that name, and it would go into rules",
  "mode: ipvs\nipvs: {scheduler: fastest}": "the kernel would refuse it with every sync",
  "hostnameOverride: $(NODE_NAME)": "a variable that was not replaced: no Node can be called so",
  "featureGates: {NoSuchGate: true}": "gates of other releases of kube-proxy are a warning here",
};

test.each(recorded.verdicts)("$lines: $verdict", ({ lines, verdict }) => {
  const ours = parseFile(lines).kind === "run" ? "accepts" : "refuses";
  expect(ours === verdict).toBe(!Object.hasOwn(DIFFERENCES, lines));
});

test("there are enough of them, and no difference without its file", () => {
  expect(recorded.verdicts.filter(({ verdict }) => verdict === "refuses").length).toBeGreaterThanOrEqual(40);
  const files = recorded.verdicts.map(({ lines }) => lines);
  expect(files).toEqual(expect.arrayContaining(Object.keys(DIFFERENCES)));
});
