import type { Flow } from "@fairlead/inspect";
import { NETWORKS } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireAgent } from "../../src/agent/agent-file.ts";
import { calls, flowObjects, flowPorts } from "../../src/flows/calls.ts";
import { flowLine, makeCalls } from "../../src/flows/made.ts";
import { applySettings } from "../../src/lab/apply.ts";
import { type Lab, openLab } from "../../src/lab/lab.ts";
import { openScene, type Scene } from "../../src/one-node/scene.ts";
import { fairlead, requireTool } from "../../src/tools/fairlead.ts";

/** At least a thousand in all. */
const EACH = Math.ceil(1_000 / calls.length);

/** What has ended is still known when it is asked for, on a busy machine too. */
const REMEMBERED = {
  "net/netfilter/nf_conntrack_tcp_timeout_time_wait": "600",
  "net/netfilter/nf_conntrack_tcp_timeout_last_ack": "600",
  "net/netfilter/nf_conntrack_udp_timeout": "600",
};

/** As /proc/net/netlink has it. */
const NETLINK_NETFILTER = "12";
/** NFNLGRP_CONNTRACK_NEW, _UPDATE and _DESTROY as bits (linux/netfilter/nfnetlink_compat.h). */
const CONNTRACK_GROUPS = 0b111;

const MODES = [
  { mode: "iptables", flags: [], hold: false },
  { mode: "nftables", flags: [], hold: false },
  // What has ended only the relay knew, and it keeps nothing.
  { mode: "userspace", flags: ["--udp-timeout=600s", "--proxy-port-range=20000-29999"], hold: true },
];

describe.each(MODES)("fairlead flows beside real connections in $mode mode", ({ mode, flags, hold }) => {
  let lab: Lab;
  let scene: Scene | undefined;

  beforeAll(async () => {
    await Promise.all([requireAgent(), requireTool()]);
    lab = await openLab(flowPorts);
    await applySettings(lab.runner("node-a"), REMEMBERED);
    scene = await openScene(lab, flowObjects, { flags: [`--proxy-mode=${mode}`, ...flags] });
  });

  afterAll(async () => {
    await scene?.close();
    await lab.dispose();
  });

  test("every connection of a service is told with service, endpoint and owner, and no other", async () => {
    const made = await makeCalls(lab, EACH, hold);
    expect(made.connections).toBeGreaterThanOrEqual(1_000);
    const where = ["-f", scene?.folder.manifests ?? "", "--node", "node-a"];
    const own = ["--cluster-cidr", NETWORKS.calico.IPv4, "--cluster-cidr", NETWORKS.calico.IPv6];
    const others = ["--exclude-cluster-cidr", NETWORKS.ovn.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv6];
    const { out, code } = await fairlead(lab, "flows", ...where, ...own, ...others, "-o", "json");
    const flows: readonly Flow[] = JSON.parse(out);
    expect(flows.map(flowLine).sort()).toEqual(made.lines);
    expect(code).toBe(0);
  });

  test("while nobody asks, nobody on the node listens to what is tracked", async () => {
    const { stdout } = await lab.runner("node-a").run(["cat", "/proc/net/netlink"]);
    const sockets = stdout.split("\n").map((line) => line.trim().split(/\s+/));
    const netfilter = sockets.filter(([, protocol]) => protocol === NETLINK_NETFILTER);
    const subscribed = netfilter.filter(
      ([, , , groups = ""]) => (Number.parseInt(groups, 16) & CONNTRACK_GROUPS) !== 0,
    );
    expect(subscribed).toEqual([]);
  });
});
