import { requireAgent } from "@fairlead/lab/agent";
import { inflict } from "@fairlead/lab/faults";
import { whoAnswers } from "@fairlead/lab/plain/requests";
import { labPorts, NGINX_CALICO_IP, objects, openScene, type Scene } from "@fairlead/lab/plain/scene";
import { type PageReader, readConsole, requireTool } from "@fairlead/lab/tools/page-reader";
import { clientA, NETWORKS } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

describe("fairlead console alongside the running agent, in a browser", () => {
  const lab = labFor(labPorts, requireAgent, requireTool);
  let scene: Scene;
  let page: PageReader;

  beforeAll(async () => {
    // So long that nothing but a restart makes it look at every rule.
    scene = await openScene(lab, objects, { flags: ["--iptables-sync-period=1h"] });
    const own = ["--cluster-cidr", NETWORKS.calico.IPv4, "--cluster-cidr", NETWORKS.calico.IPv6];
    const others = ["--exclude-cluster-cidr", NETWORKS.ovn.IPv4, "--exclude-cluster-cidr", NETWORKS.ovn.IPv6];
    const where = ["-f", scene.folder.manifests, "--live", "--node", "node-a"];
    page = await readConsole(lab.namespace("node-a"), [...where, ...own, ...others]);
  });

  afterAll(async () => {
    await page[Symbol.asyncDispose]();
    await scene.close();
  });

  test("a healthy node", async () => {
    page.go("#/overview");
    const text = await page.until(/^(?=[\s\S]*✓\s*healthy)[\s\S]*node-a[\s\S]*✓\s*as planned/);
    expect(text).not.toMatch(/cannot be read|does not answer/);
  });

  test("connections by service and endpoint, from the kernel's own tracking", async () => {
    page.go("#/flows");
    await page.until(/No connection with a service|By service and endpoint[\s\S]*Received/);
    const server = await whoAnswers(lab, clientA, NGINX_CALICO_IP);
    expect(server).toBe("nginx");
    await page.until(/10\.144\.\d+\.\d+:\d+\s+tcp 10\.96\.67\.75:80\s+default\/nginx-calico\s+10\.144\.\d+\.\d+:80/);
    // They are counted as ones that were not there before, however far apart a busy machine looks.
    let isCounted = false;
    const counted = page.until(/New connections a second: [\d.]+ now, [\d.]+ to (?!0 )[\d.]+ in \d+ s/);
    const opened = async () => {
      while (!isCounted) await whoAnswers(lab, clientA, NGINX_CALICO_IP);
    };
    await Promise.all([
      counted.finally(() => {
        isCounted = true;
      }),
      opened(),
    ]);
  });

  test("doctor: what of the node is good and what is not, without a look at any API server", async () => {
    page.go("#/doctor");
    const text = await page.until(/node-a[\s\S]*checks are good/);
    expect(text).not.toMatch(/API server\s*✓/);
  });

  test("a rule that another program deletes: its service is red and the rule is named", async ({ annotate }) => {
    page.go("#/service/default/nginx-calico");
    await page.until(/✓\s*as planned/);
    const began = performance.now();
    await inflict(lab.runner("node-a"), { table: "nat", remove: /nginx-calico.* -j DNAT / });
    await page.until(/differs from the plan/);
    await annotate(`red after ${Math.round(performance.now() - began)} ms`);
    await page.until(/missing in nat KUBE-SEP-\w+: .*default\/nginx-calico.* -j DNAT --to-destination/);
    page.go("#/services");
    await page.until(/default\/nginx-calico[\s\S]*✕\s*differs on node-a/);
  });

  test("the agent writes it again: green by itself", async () => {
    page.go("#/service/default/nginx-calico");
    await page.until(/differs from the plan/);
    await scene.agent().kill();
    await scene.restart();
    expect(await page.until(/✓\s*as planned/)).not.toMatch(/differs from the plan/);
  });

  test("an agent that was stopped is shown as such, and the kernel next to it", async () => {
    page.go("#/overview");
    await page.until(/✓\s*healthy/);
    await scene.agent().kill();
    await page.until(/✕\s*stopped or not reachable/);
    await page.until(/127\.0\.0\.1:10249\/proxyMode does not answer/);
    await page.until(/✓\s*as planned/);
  });
});
