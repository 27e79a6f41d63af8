import { goldenScenario, goldenScenarios } from "@fairlead/testkit";
import { describe, expect, test } from "vitest";
import { keptComment } from "../../src/sysdump/keep/comments.ts";
import { withoutSecrets } from "../../src/sysdump/keep/free-text.ts";
import type { Keep } from "../../src/sysdump/keep/keep.ts";
import { networkKeep } from "../../src/sysdump/keep/networks.ts";
import { AGENT_CONFIGURATION, KUBE_PROXY_CONFIGURATION, keptPage } from "../../src/sysdump/keep/pages.ts";
import { keptRun } from "../../src/sysdump/keep/runs.ts";
import { ENDPOINT_SLICE, SERVICE_CIDR, serviceKeep } from "../../src/sysdump/keep/services.ts";
import { CONFIG_MAP, FULL, NETWORKS } from "./full-objects.ts";
import { planted, SECRETS } from "./plant.ts";

const KINDS: readonly (readonly [kind: string, keep: Keep])[] = [
  ["Service", serviceKeep(["ovn.kubernetes.io/vpc"])],
  ["EndpointSlice", ENDPOINT_SLICE],
  ["ServiceCIDR", SERVICE_CIDR],
  ["KubeProxyConfiguration", KUBE_PROXY_CONFIGURATION],
  ["FairleadConfiguration", AGENT_CONFIGURATION],
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

test("comments that proxies write are kept, others are not", () => {
  for (const { name } of goldenScenarios()) {
    const { iptables } = goldenScenario(name);
    expect(keptRun({ argv: ["iptables-nft-save"], stdout: iptables })).toEqual({
      argv: ["iptables-nft-save"],
      stdout: iptables,
    });
  }
  for (const comment of ["flanneld masq", "cali:tVnHkvAo15HuiPy0", "default/web has no endpoints"]) {
    expect(keptComment(comment)).toBe(comment);
  }
  for (const comment of ["hunter2", "for the admin", ...SECRETS]) expect(keptComment(comment)).toBe("[left out]");
});

test.each([
  [
    "iptables-nft-save",
    (text: string) => `*nat\n-A X -m comment --comment "${text}" -j ACCEPT\n-A X -j LOG --log-prefix ${text}\n`,
  ],
  [
    "nft list table ip mine",
    (text: string) => `table ip mine {\n\tcomment "${text}"\n\tchain c {\n\t\tlog prefix "${text}"\n\t}\n}\n`,
  ],
  [
    "fairlead __tables ip",
    (text: string) => JSON.stringify([{ name: "mine", comment: text, sets: [{ userData: text }] }]),
  ],
  ["ipset save", (text: string) => `add MINE 10.0.0.1 comment "${text}"\n`],
  ["ip -json address", (text: string) => JSON.stringify([{ ifname: "eth0", ifalias: text, addr_info: [] }])],
  ["ip -json -4 route show", (text: string) => JSON.stringify([{ dst: "default", dev: "eth0", realm: text }])],
  ["cat /proc/timer_list", (text: string) => `jiffies: 1\n #0: <x>, ${text}\n`],
  ["cat /proc/sys/net/netfilter/nf_conntrack_max", (text: string) => text],
  ["cat /etc/kubernetes/pki/ca.key", (text: string) => text],
  ["ipvsadm --save -n", (text: string) => `${text}\n`],
  ["uname -rm", (text: string) => text],
])("of %s a secret is left out", (line, printed) => {
  const [program = "", ...args] = line.split(" ");
  for (const secret of SECRETS) {
    const kept = keptRun({ argv: [program, ...args], stdout: printed(secret) });
    expect(JSON.stringify(kept) ?? "").not.toContain(secret);
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
