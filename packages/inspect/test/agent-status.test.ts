import { expect, test } from "vitest";
import { agentStatus } from "../src/index.ts";

const METRICS = `# HELP fairlead_build_info 1, labeled with the running version
fairlead_build_info{version="1.4.0",node_version="v24.1.0",platform="linux/amd64"} 1
kubernetes_build_info{major="1",minor="37",git_version="v1.37+fairlead.1.4.0"} 1
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1795000060.5
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 1795000000
`;
const services = ["ours", "ours", "foreign", "mixed"].map((ownership) => ({ ownership }));

test("Fairlead's agent: its own version, the family that is behind, owners", () => {
  const pages = {
    metrics: METRICS,
    proxyMode: "nftables\n",
    ownership: JSON.stringify({ services }),
    livez: '{"healthy":true}',
  };
  expect(agentStatus(pages)).toEqual({
    program: "fairlead",
    version: "v1.4.0",
    mode: "nftables",
    healthy: true,
    lastSync: "2026-11-18T11:06:40.000Z",
    owners: { ours: 2, foreign: 1, mixed: 1 },
  });
});

test("kube-proxy: without labels, without owners", () => {
  const upstream = `kubernetes_build_info{git_version="v1.37.1"} 1\nkubeproxy_sync_proxy_rules_last_timestamp_seconds 1.795e+09\n`;
  expect(agentStatus({ metrics: upstream, proxyMode: "iptables", livez: '{"healthy":false}' })).toEqual({
    program: "kube-proxy",
    version: "v1.37.1",
    mode: "iptables",
    healthy: false,
    lastSync: "2026-11-18T11:06:40.000Z",
  });
});

test.each([{}, { metrics: "", proxyMode: "", ownership: "[]", livez: "ok" }, { metrics: "<html>", ownership: "{" }])(
  "what cannot be read is left out: %j",
  (pages) => {
    expect(agentStatus(pages)).toEqual({});
  },
);
