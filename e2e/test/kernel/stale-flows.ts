import { PATIENCE_MS } from "@fairlead/base/testing";
import { openScene, type Scene } from "@fairlead/lab/plain/scene";
import { waitUntil } from "@fairlead/lab/support/wait-until";
import { clusterObjects, webA1, workload } from "@fairlead/testkit";
import { afterAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const PORTS = { tcp: [80, 8080], udp: [] };
const dns = workload(15, { endpoints: [webA1], protocol: "UDP" });
const serving = webA1.addresses.IPv4;
const GONE = "10.144.99.99";

describe("stale flows on the real kernel", () => {
  const lab = labFor({ podPorts: PORTS, landingPorts: PORTS });
  let scene: Scene | undefined;

  afterAll(() => scene?.close());

  test("UDP entries that lead to an endpoint that is gone are deleted by netlink, and no others", async () => {
    const node = lab.runner("node-a");
    const entry = async (clientPort: number, endpoint: string) => {
      const original = ["-s", "10.144.9.9", "-d", dns.clusterIP.IPv4, "--sport", `${clientPort}`, "--dport", "80"];
      const reply = ["-r", endpoint, "-q", "10.144.9.9"];
      const replyPorts = ["--reply-port-src", "8080", "--reply-port-dst", `${clientPort}`];
      await node.run(["conntrack", "-I", "-p", "udp", "-t", "300", ...original, ...reply, ...replyPorts]);
    };
    await entry(1001, serving);
    await entry(1002, GONE);
    scene = await openScene(lab, [...clusterObjects, ...dns.objects]);
    const { log } = scene.agent();
    await waitUntil("the cleaning", PATIENCE_MS, async () =>
      log().includes("Deleted stale conntrack") ? true : undefined,
    );
    expect(log()).not.toContain("conntrack-tools");
    const { stdout } = await node.run(["conntrack", "-L", "-p", "udp", "-d", dns.clusterIP.IPv4]);
    expect(stdout).toContain(`src=${serving}`);
    expect(stdout).not.toContain(GONE);
  });
});
