import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse as parseYAML } from "yaml";
import { FLAGS } from "../src/flags/table.ts";
import { configOf, FILE, fixture, parse } from "./parse.ts";

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
      expect(flag?.defaultText ?? "").toBe(name === "--ipvs-scheduler" ? "rr" : (value ?? "").replaceAll('"', ""));
    },
  );

  test("no more flags than these, those of old and of Windows, and Fairlead's own", () => {
    const theirs = new Set(flags.map(([name]) => name));
    const others = [...FLAGS.values()].filter(({ name }) => !theirs.has(`--${name}`));
    expect(
      others.filter(({ windows, deprecated }) => windows !== true && deprecated === undefined).map((flag) => flag.name),
    ).toEqual([
      "allow-exec-credentials",
      "exclude-cluster-cidr",
      "exclude-cidrs-from",
      "cluster-cidr-from",
      "cidr-removal-delay",
      "mixed-services",
      "excluded-frontends",
      "masquerade-to-excluded",
      "ownership-annotation",
      "service-proxy-name",
      "service-network",
      "state-dir",
      "manifests",
      "ipvs-fallback",
      "proxy-port-range",
      "udp-timeout",
      "userspace-only",
      "userspace-tcp-idle-timeout",
      "userspace-max-sockets",
      "userspace-max-sockets-per-service",
      "reset-stale-tcp",
      "shadow",
      "shadow-grace-period",
      "service-metrics",
      "service-metrics-max-series",
    ]);
  });
});
