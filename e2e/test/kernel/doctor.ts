import { PATIENCE_MS } from "@fairlead/base/testing";
import { requireAgent } from "@fairlead/lab/agent";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { labPorts, objects, openScene, type Scene, web } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { fairlead, requireTool } from "@fairlead/lab/tools/page-reader";
import { NETWORKS, NODE_A } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const FLAGS = [
  "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true",
  "--nodeport-addresses=primary,localhost",
] as const;

/** What it cannot know here. */
const NOT_ASKED = ["CIDRs", "API server"];

interface Diagnosis {
  readonly check: string;
  readonly state: "good" | "warning" | "bad" | "unknown";
  readonly found: string;
}

describe("fairlead doctor alongside an agent that relays node ports of loopback addresses", () => {
  // The relay listens at the node port, which nothing else may do.
  const landingPorts = { ...labPorts.landingPorts, tcp: [80, 8080] };
  const lab = labFor({ ...labPorts, landingPorts }, requireAgent, requireTool);
  let scene: Scene;

  beforeAll(async () => {
    scene = await openScene(lab, objects, { flags: ["--proxy-mode=nftables", ...FLAGS] });
  });

  afterAll(() => scene.close());

  async function doctor(): Promise<readonly Diagnosis[]> {
    const cidrs = [NETWORKS.calico.IPv4, NETWORKS.calico.IPv6].flatMap((cidr) => ["--cluster-cidr", cidr]);
    const flags = FLAGS.map((flag) => `--agent-flag=${flag}`);
    return JSON.parse((await fairlead(lab, "doctor", "--mode", "nftables", ...cidrs, ...flags, "-o", "json")).out);
  }

  test("the port is served there, and nothing is wrong", async () => {
    // The relay listens when the rules are there, and not before.
    await waitUntil("an answer at the node port", PATIENCE_MS, async () =>
      (await whoAnswers(lab, NODE_A, "127.0.0.1", web.nodePort)).startsWith("web-") ? true : undefined,
    );
    const open = (await doctor()).filter(({ state }) => state !== "good");
    expect(open.map(({ check }) => check)).toEqual(NOT_ASKED);
  });

  test("an agent that is gone is noticed: its rules are there, and it relays nothing", async () => {
    await scene.agent().stop();
    expect(await whoAnswers(lab, NODE_A, "127.0.0.1", web.nodePort)).toBe("refused");
    const found = await doctor();
    expect(found.find(({ check }) => check === "nft tables of the mode")).toMatchObject({ state: "good" });
    expect(found.find(({ check }) => check === "proxies on this node")).toMatchObject({
      state: "warning",
      found: "none runs",
    });
  });
});
