import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf } from "@fairlead/base";
import { PROXY_MODES } from "@fairlead/config";
import {
  type Decoded,
  decodeEndpointSlice,
  decodeNode,
  decodeService,
  decodeServiceCIDR,
  OWN_ANNOTATIONS,
} from "@fairlead/core";
import { type NodeState, nodeStateText } from "@fairlead/inspect";
import { readTables } from "@fairlead/netfilter/nft";
import { goldenScenario, goldenScenarios, notingReads } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import type { Keep } from "../src/sysdump/keep.ts";
import { configuration, keptPage, shareableState, withoutSecrets } from "../src/sysdump/kept-node.ts";
import { ENDPOINT_SLICE, networkKeep, SERVICE_CIDR, serviceKeep } from "../src/sysdump/kept-objects.ts";
import { CONFIG_MAP, FULL, NETWORKS, planted, SECRETS } from "./support/full-objects.ts";
import { fairlead } from "./support/run.ts";

const KINDS: readonly (readonly [kind: string, keep: Keep])[] = [
  ["Service", serviceKeep(["ovn.kubernetes.io/vpc"])],
  ["EndpointSlice", ENDPOINT_SLICE],
  ["ServiceCIDR", SERVICE_CIDR],
  ["KubeProxyConfiguration", configuration("KubeProxyConfiguration")],
  ["FairleadConfiguration", configuration("FairleadConfiguration")],
  ...Object.entries(NETWORKS).map(([kind, { resource, settings }]) => [kind, networkKeep(resource, settings)] as const),
];

describe.each(KINDS)("of a %s", (kind, keep) => {
  const full = FULL[kind];

  test("all that tools read is kept", () => {
    expect(keep(full)).toEqual(full);
  });

  test.each(SECRETS)("a secret is left out wherever it is: %s", (secret) => {
    const objects = [...planted(full, secret)];
    expect(objects.length).toBeGreaterThan(5);
    for (const object of objects) expect(JSON.stringify(keep(object)) ?? "").not.toContain(secret);
  });
});

const DECODERS: Readonly<Record<string, (raw: unknown) => Decoded<unknown>>> = {
  Service: (raw) => decodeService(raw, undefined, { serviceProxyName: "edge" }),
  EndpointSlice: decodeEndpointSlice,
  Node: decodeNode,
  ServiceCIDR: decodeServiceCIDR,
};

/** What `Keep` has of metadata by itself. */
const OF_EVERY_KIND = /^\.metadata\.(?:name|namespace|uid|generation|creationTimestamp|deletionTimestamp)$/;

test.each(Object.entries(DECODERS))("all that is read of a %s is kept", (kind, decode) => {
  const read = new Set<string>();
  expect(decode(notingReads(FULL[kind], read)).object).toBeDefined();
  const asked = [...read].filter((path) => !OF_EVERY_KIND.test(path));
  const missing = asked.filter((path) => valuesAt(FULL[kind], path).length === 0);
  expect(missing).toEqual([]);
});

/** @param path of fields, through all items of lists; labels and annotations are looked at as a whole */
function valuesAt(object: unknown, path: string): readonly unknown[] {
  const fields = path
    .replace(/(\.(?:labels|annotations))\..*$/, "$1")
    .split(".")
    .slice(1);
  return fields.reduce<readonly unknown[]>(
    (values, name) => {
      const inner = values.map((value) => fieldsOf(value)[name]).filter((value) => value !== undefined);
      return inner.flat();
    },
    [object],
  );
}

/** Annotations of Fairlead that a dump leaves out, and why. */
const LEFT_OUT_ANNOTATIONS: Readonly<Record<string, string>> = {
  "fairlead.dev/proxy-proven": "of the DaemonSets that `migrate` writes: a dump has no DaemonSets",
  "fairlead.dev/migration-problem": "of the DaemonSets that `migrate` writes",
  "fairlead.dev/manifests": "of the DaemonSets that `migrate` writes",
  "fairlead.dev/process": "of the DaemonSets that `migrate` writes",
  "fairlead.dev/check": "a label of pods: a dump has no pods",
  "fairlead.dev/service-proxy-name": "a label of pods",
  "fairlead.dev/serves-": "of the pods of `connectivity`",
  "fairlead.dev/migrate-options": "of the DaemonSets that `migrate` writes",
  "fairlead.dev/gateway": "the controller's name in GatewayClasses: a dump has no GatewayClasses",
  "fairlead.dev/addresses": "of GatewayClasses",
  "fairlead.dev/gateway-annotations":
    "what the controller remembers of a Gateway's annotations: nothing is planned by it",
};

function annotationsInSources(): ReadonlySet<string> {
  const root = join(import.meta.dirname, "../../..");
  const rooms = ["packages", "apps"].map((name) => join(root, name));
  const folders = rooms.flatMap((room) => readdirSync(room).map((name) => join(room, name, "src")));
  const files = folders.filter(existsSync).flatMap((folder) => {
    const inIt = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return inIt.filter((file) => file.endsWith(".ts")).map((file) => join(folder, file));
  });
  const texts = files.map((file) => readFileSync(file, "utf8"));
  const constants = texts.flatMap((text) =>
    Array.from(text.matchAll(/^(?:export )?const [A-Z_]+ = "(fairlead\.dev\/(?!v\d)[a-z-]+)";$/gm)),
  );
  return new Set(constants.map(([, name = ""]) => name));
}

test("every annotation of Fairlead is kept, or left out for a reason", () => {
  const names = annotationsInSources();
  expect(names.size).toBeGreaterThan(8);
  const kept = [FULL["Service"], FULL["EndpointSlice"], FULL["Node"]].flatMap((object) => {
    const { annotations, labels } = fieldsOf(fieldsOf(object)["metadata"]);
    return [...Object.keys(fieldsOf(annotations)), ...Object.keys(fieldsOf(labels))];
  });
  const unknown = [...names].filter((name) => !kept.includes(name) && !Object.hasOwn(LEFT_OUT_ANNOTATIONS, name));
  expect(unknown).toEqual([]);
});

test.each(["Service", "EndpointSlice"] as const)(
  "of a %s every annotation that is read is kept, and described",
  (kind) => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/annotations.md"), "utf8");
    const { annotations } = fieldsOf(fieldsOf(FULL[kind])["metadata"]);
    const known = OWN_ANNOTATIONS[kind];
    expect(known.filter((name) => !Object.hasOwn(fieldsOf(annotations), name))).toEqual([]);
    expect(known.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  },
);

test("a value of the wrong form is not taken as unset", () => {
  const annotations = { "fairlead.dev/balance": "The fastest!", "fairlead.dev/fast-path": { off: true } };
  expect(serviceKeep([])({ metadata: { annotations } })).toEqual({
    metadata: { annotations: { "fairlead.dev/balance": "invalid", "fairlead.dev/fast-path": "invalid" } },
  });
});

test("a ConfigMap is text within text", () => {
  const { resource, settings } = CONFIG_MAP;
  const keep = networkKeep(resource, settings);
  const data = {
    "net-conf.json": '{"Network":"10.244.0.0/16","Key":"x"}',
    accepted: "- {cidr: 10.9.0.0/16, by: me}",
    other: "x",
  };
  expect(keep({ data })).toEqual({
    data: { "net-conf.json": '{"Network":"10.244.0.0/16"}', accepted: '[{"cidr":"10.9.0.0/16"}]' },
  });
});

test("what secrets look like is left out of free text", () => {
  for (const secret of SECRETS) {
    for (const text of [
      `Authorization: Bearer ${secret}`,
      `I1123 token="${secret}" next`,
      `{"password":"${secret}"}`,
    ]) {
      expect(withoutSecrets(text)).not.toContain(secret);
    }
  }
  const log =
    'I1123 16:48:00.123456   1234 fairlead] "Synced rules" ipFamily="IPv4" service="shop/web:http" chain="KUBE-SVC-FYZB2HTOW53NRIPL"';
  expect(withoutSecrets(log)).toBe(log);
});

/** What a proxy in this mode writes for objects with all that services can ask for. */
async function planned(mode: string): Promise<string> {
  const objects = goldenScenarios().flatMap(({ name }) => goldenScenario(name).objects);
  const more = ["--exclude-cluster-cidr", "10.244.0.0/16", "--node", "node-a"];
  const argv = ["plan", "-f", "-", "--mode", mode, "--cluster-cidr", "10.144.0.0/16", ...more];
  const { out, err, code } = await fairlead(argv, { stdin: JSON.stringify(objects) });
  if (code !== 0) throw new Error(err);
  return out;
}

const rules = (save: string): NodeState => ({
  rules: [{ family: "IPv4", variant: "nft", inUse: true, save, notInstalled: false }],
  problems: {},
});

test.each([["iptables"], ["ipvs"]])("comments that Fairlead writes are kept, %s mode", async (mode) => {
  const text = await planned(mode);
  expect(text.match(/--comment/g)?.length).toBeGreaterThan(10);
  expect(shareableState(rules(text))).toEqual(rules(text));
});

test("comments that Fairlead writes are kept, nftables mode", async () => {
  const state = { tables: readTables(await planned("nftables")), problems: {} };
  for (const part of ["slots by chance", "the client's endpoint"]) expect(nodeStateText(state)).toContain(part);
  expect(shareableState(state)).toEqual(state);
});

test("comments that kube-proxy writes are kept, those of others are not", () => {
  for (const { name } of goldenScenarios()) {
    const { iptables, nft } = goldenScenario(name);
    expect(shareableState(rules(iptables))).toEqual(rules(iptables));
    const state = { tables: readTables(nft), problems: {} };
    expect(shareableState(state)).toEqual(state);
  }
  const others = '-A FORWARD -m comment --comment "for the admin" -j ACCEPT\n';
  expect(shareableState(rules(others))).toEqual(rules(others.replace("for the admin", "[left out]")));
});

test.each<[string, (text: string) => NodeState]>([
  ["rules", (text) => rules(`*nat\n-A X -m comment --comment "${text}" -j ACCEPT\n-A X -j LOG --log-prefix ${text}\n`)],
  [
    "tables",
    (text) => ({
      tables: readTables(
        `table ip mine {\n\tcomment "${text}"\n\tset s {\n\t\ttype ipv4_addr\n\t\tcomment "${text}"\n\t\telements = { 10.0.0.1 comment "${text}" }\n\t}\n\tchain c {\n\t\tcomment "${text}"\n\t\taccept comment "${text}"\n\t\tlog prefix "${text}"\n\t}\n}\n`,
      ),
      problems: {},
    }),
  ],
  ["problems", (text) => ({ problems: { rules: `iptables-save: token=${text}` } })],
])("of %s a secret is left out", (_what, stateWith) => {
  for (const secret of SECRETS) {
    expect(nodeStateText(stateWith(secret))).toContain(secret);
    expect(nodeStateText(shareableState(stateWith(secret)))).not.toContain(secret);
  }
});

test.each([
  ["/metrics", (text: string) => `fairlead_build_info{version="${text}"} 1\nother_metric{a="${text}"} 1\n`],
  [
    "/configz",
    (text: string) =>
      JSON.stringify({ "kubeproxy.config.k8s.io": { clientConnection: { kubeconfig: text } }, x: text }),
  ],
  [
    "/ownership",
    (text: string) => JSON.stringify({ services: [{ service: "a/b", why: `the annotation is "${text}"` }] }),
  ],
  ["/livez", (text: string) => `not healthy: token=${text}`],
  ["/proxyMode", (text: string) => text],
  ["/debug/pprof", (text: string) => text],
])("of the page %s a secret is left out", (path, page) => {
  for (const secret of SECRETS) expect(keptPage(path, page(secret)) ?? "").not.toContain(secret);
});

test("of learned CIDRs that lie in each other both are kept", () => {
  const networks = { conflicts: [{ cidr: "10.144.9.0/24", side: "excluded", within: "10.144.0.0/16" }] };
  expect(JSON.parse(keptPage("/ownership", JSON.stringify({ networks })) ?? "")).toEqual({ networks });
});

test.each(PROXY_MODES)("the page of an agent in %s mode is kept", (mode) => {
  expect(keptPage("/proxyMode", `${mode}\n`)).toBe(mode);
});
