import { type AgentConfig, parseArguments } from "@fairlead/config";
import { sourceKinds } from "@fairlead/networks";
import { describe, expect, test } from "vitest";
import { filterSettings, networksSettings, ruleAnnotations } from "../src/index.ts";

function configOf(...flags: readonly string[]): AgentConfig {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

function filterOf(config: AgentConfig) {
  const settings = filterSettings(config);
  if (!settings.ok) throw new Error(settings.errors.join());
  return settings.options;
}

test("every source that there is can be configured, and no other", () => {
  const names = Object.keys(sourceKinds);
  const { excludeCIDRsFrom } = configOf(`--exclude-cidrs-from=${names.join(",")}`).multiCNI;
  expect(excludeCIDRsFrom.map(({ source }) => source)).toEqual(names);
  expect(() => configOf("--exclude-cidrs-from=others")).toThrow(`must be one of ${names.join(", ")}`);
});

test("sources become settings, beside what was written", () => {
  const config = configOf(
    "--cluster-cidr=10.144.0.0/16",
    "--exclude-cluster-cidr=10.17.0.0/16",
    "--exclude-cidrs-from=kube-ovn-subnets",
    "--cluster-cidr-from=calico-ippools",
  );
  const settings = networksSettings(config, filterOf(config));
  expect(settings).toMatchObject({
    written: { own: ["10.144.0.0/16"], excluded: ["10.17.0.0/16"] },
    debounceMs: 1_000,
    consentNamespace: "kube-system",
  });
  expect(settings?.sources.excluded.map(({ id }) => id)).toEqual(["kube-ovn-subnets"]);
  expect(settings?.sources.own.map(({ id }) => id)).toEqual(["calico-ippools"]);
});

test("without sources nothing is learned, and the memory's scope is as ever", () => {
  const config = configOf("--exclude-cluster-cidr=10.17.0.0/16");
  expect(networksSettings(config, filterOf(config))).toBeUndefined();
  expect(filterOf(config)).not.toHaveProperty("sources");
});

const withRules = (serviceRules: AgentConfig["multiCNI"]["serviceRules"], config = configOf()): AgentConfig => ({
  ...config,
  multiCNI: { ...config.multiCNI, serviceRules },
});

test("rules follow what they ask for, and are in the memory's scope", () => {
  const annotation = { annotation: "ovn.kubernetes.io/vpc", notIn: ["ovn-cluster"], ownership: "foreign" } as const;
  const byAnnotation = withRules([annotation]);
  expect(networksSettings(byAnnotation, filterOf(byAnnotation))).toMatchObject({ sources: { own: [], excluded: [] } });
  expect(ruleAnnotations(byAnnotation)).toEqual(new Set(["ovn.kubernetes.io/vpc"]));
  const label = { namespaceLabel: "udn", ownership: "foreign" } as const;
  const byBoth = withRules([annotation, label]);
  expect(networksSettings(byBoth, filterOf(byBoth))).toMatchObject({
    rules: [annotation, label],
    sources: { own: [], excluded: [] },
  });
  expect(filterOf(byBoth).sources).toEqual([
    "rule:annotation ovn.kubernetes.io/vpc not in ovn-cluster: foreign",
    "rule:namespace label udn: foreign",
  ]);
});

test("the memory's scope follows the sources that are configured", () => {
  expect(filterOf(configOf("--exclude-cidrs-from=flannel", "--cluster-cidr-from=calico-ippools")).sources).toEqual([
    "excluded:flannel",
    "own:calico-ippools",
  ]);
});

test("a custom source that has not its form is an error that names the field", () => {
  const config = configOf();
  const custom = { source: "custom", resource: "ippools", fields: ["spec.cidr"] } as const;
  const wrong = { ...config, multiCNI: { ...config.multiCNI, excludeCIDRsFrom: [custom] } };
  expect(filterSettings(wrong)).toEqual({
    ok: false,
    errors: [
      'excludeCIDRsFrom: "ippools" must be plural.version.group, such as ippools.v1.crd.projectcalico.org, or configmaps.v1 of the core group',
    ],
  });
});

describe("within", () => {
  const settingsOf = (multiCNI: Partial<AgentConfig["multiCNI"]>) => {
    const config = configOf("--cluster-cidr=10.144.0.0/16");
    return filterSettings({ ...config, multiCNI: { ...config.multiCNI, ...multiCNI } });
  };

  test("is part of the settings, not of the memory's scope", () => {
    const config = configOf("--cluster-cidr=10.144.0.0/16");
    const excludeCIDRsFrom = [{ source: "kube-ovn-subnets", within: ["10.16.0.0/12"] }] as const;
    const given = { ...config, multiCNI: { ...config.multiCNI, excludeCIDRsFrom } };
    expect(networksSettings(given, filterOf(given))?.within).toEqual(new Map([["kube-ovn-subnets", ["10.16.0.0/12"]]]));
    expect(filterOf(given).sources).toEqual(["excluded:kube-ovn-subnets"]);
  });

  test.each([
    ["10.16.0.1/12", "excludeCIDRsFrom[0].within: 10.16.0.1/12: has host bits set; write 10.16.0.0/12"],
    ["0.0.0.0/0", "excludeCIDRsFrom[0].within: 0.0.0.0/0: covers every IPv4 address"],
    ["10.144.0.0/15", "excludeCIDRsFrom[0].within: 10.144.0.0/15: covers all of --cluster-cidr 10.144.0.0/16"],
    ["ten", "excludeCIDRsFrom[0].within: ten: must be a CIDR"],
  ])("%s is an error as in a written list", (cidr, error) => {
    const found = settingsOf({ excludeCIDRsFrom: [{ source: "spiderpool", within: [cidr] }] });
    expect(found).toEqual({ ok: false, errors: [expect.stringContaining(error)] });
  });

  test("the same CIDR on both sides is an error that names both fields", () => {
    const found = settingsOf({
      excludeCIDRsFrom: [{ source: "kube-ovn-subnets", within: ["10.16.0.0/16"] }],
      clusterCIDRsFrom: [{ source: "calico-ippools", within: ["10.16.0.0/16"] }],
    });
    expect(found).toEqual({
      ok: false,
      errors: [
        "excludeCIDRsFrom[0].within: 10.16.0.0/16: is also in clusterCIDRsFrom[0].within; give it to one of the two networks",
      ],
    });
  });

  test.each(["nodes", "cilium-nodes", "ovn-kubernetes-nodes"] as const)(
    "%s needs one: nodes write its objects",
    (source) => {
      const found = settingsOf({ clusterCIDRsFrom: [{ source }] });
      expect(found).toEqual({
        ok: false,
        errors: [expect.stringContaining(`clusterCIDRsFrom[0]: ${source}: needs within`)],
      });
      expect(settingsOf({ clusterCIDRsFrom: [{ source, within: ["10.144.0.0/16"] }] }).ok).toBe(true);
    },
  );

  test("user-defined networks are taken with a note", () => {
    const found = settingsOf({ excludeCIDRsFrom: [{ source: "ovn-kubernetes-udns" }] });
    expect(found).toMatchObject({
      ok: true,
      notes: [expect.stringContaining("ovn-kubernetes-udns: nothing is learned")],
    });
  });
});
