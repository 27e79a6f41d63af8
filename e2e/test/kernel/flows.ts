import { requireAgent } from "@fairlead/lab/agent";
import { openScene, type Scene } from "@fairlead/lab/plain/scene";
import { requireTool } from "@fairlead/lab/tools/page-reader";
import { applySettings } from "@fairlead/lab/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { flowObjects, flowPorts, flowsReported, REMEMBERED } from "../../src/cases/flows.ts";
import { labFor } from "./lab-for.ts";

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

describe.each(MODES)("fairlead flows compared with real connections in $mode mode", ({ mode, flags, hold }) => {
  const lab = labFor(flowPorts, requireAgent, requireTool);
  let scene: Scene | undefined;

  beforeAll(async () => {
    await applySettings(lab.runner("node-a"), REMEMBERED);
    scene = await openScene(lab, flowObjects, { flags: [`--proxy-mode=${mode}`, ...flags] });
  });

  afterAll(() => scene?.close());

  test("every connection of a service is reported with service, endpoint and owner, and no other", async () => {
    const { made, reported, code } = await flowsReported(lab, scene?.folder.manifests ?? "", hold);
    expect(made.connections).toBeGreaterThanOrEqual(1_000);
    expect(reported).toEqual(made.lines);
    expect(code).toBe(0);
  });

  test("while no client asks, no process on the node subscribes to connection tracking", async () => {
    const { stdout } = await lab.runner("node-a").run(["cat", "/proc/net/netlink"]);
    const sockets = stdout.split("\n").map((line) => line.trim().split(/\s+/));
    const netfilter = sockets.filter(([, protocol]) => protocol === NETLINK_NETFILTER);
    const subscribed = netfilter.filter(
      ([, , , groups = ""]) => (Number.parseInt(groups, 16) & CONNTRACK_GROUPS) !== 0,
    );
    expect(subscribed).toEqual([]);
  });
});
