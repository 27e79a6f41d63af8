import { whoAnswers } from "@fairlead/lab/plain/requests";
import { NGINX_CALICO_IP, NGINX_OVN_IP, objects, openScene, rulesOf, type Scene } from "@fairlead/lab/plain/scene";
import { clientA, nginxCalico, ovnClient } from "@fairlead/testkit";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { labFor } from "./lab-for.ts";

const PORTS = { tcp: [80, 8080], udp: [] };

/** With several CIDRs of a family there is the shared chain that finds local sources. */
const SEVERAL_NETWORKS = ["--cluster-cidr=10.144.0.0/16,10.245.0.0/16,fd00:144::/48,fd00:245::/48"];

/** The chains of kube-proxy's cleanup (pkg/proxy/iptables/cleanup.go), of all tables. */
const REMOVED_BY_KUBE_PROXY =
  /^KUBE-(SERVICES|EXTERNAL-SERVICES|FORWARD|NODEPORTS|POSTROUTING|MARK-MASQ|PROXY-CANARY|PROXY-FIREWALL|(SVC|SVL|EXT|FW|SEP)-[A-Z2-7]{16})$/;

/** kube-proxy writes it as well, and leaves it to kubelet. */
const KUBELET_CHAIN = "KUBE-FIREWALL";

describe("the founding case on the real kernel", () => {
  const lab = labFor({ podPorts: PORTS, landingPorts: PORTS });
  let scene: Scene;

  beforeAll(async () => {
    scene = await openScene(lab, objects);
  });

  afterAll(() => scene.close());

  test("iptables -t nat -L -vn shows the Calico service's chains, and nothing of the OVN service", async () => {
    const { stdout } = await lab.runner("node-a").run(["iptables", "-t", "nat", "-L", "-vn"]);
    const chain = (name: string) => chainListing(stdout, name);
    expect(chain("KUBE-SERVICES")).toMatch(
      /KUBE-SVC-RH2G6EKXTJDCSNM7 +(6|tcp) +-- +\* +\* +0\.0\.0\.0\/0 +10\.96\.67\.75 +.*default\/nginx-calico cluster IP.* tcp dpt:80/,
    );
    const service = chain("KUBE-SVC-RH2G6EKXTJDCSNM7");
    expect(service).toMatch(/KUBE-MARK-MASQ +(6|tcp) +-- +\* +\* +!10\.144\.0\.0\/16 +10\.96\.67\.75 /);
    expect(service).toMatch(/KUBE-SEP-ZMODNQBWAQHJ2KQZ +(0|all) +-- .*default\/nginx-calico -> 10\.144\.154\.71:80/);
    expect(chain("KUBE-SEP-ZMODNQBWAQHJ2KQZ")).toMatch(/DNAT +(6|tcp) .* to:10\.144\.154\.71:80/);
    expect(await rulesOf(lab).then((rules) => rules.join("\n"))).not.toContain(NGINX_OVN_IP);
    expect(stdout).not.toContain("10.244.");
  });

  test("the one is served, to pods of both networks, and the other's packets leave as they came", async () => {
    for (const from of [clientA, ovnClient]) {
      expect(await whoAnswers(lab, from, NGINX_CALICO_IP)).toBe(nginxCalico.name);
      expect(await whoAnswers(lab, from, NGINX_OVN_IP)).toBe("sink");
    }
  });

  describe("leaves nothing that kube-proxy's cleanup would not remove", () => {
    beforeAll(async () => {
      await scene.agent().stop();
      await scene.restart({ flags: SEVERAL_NETWORKS });
      await scene.agent().stop();
    });

    test("every chain is one that it names, or has one of its prefixes", async () => {
      const chains = (await rulesOf(lab)).flatMap((line) => / :(KUBE-\S+)/.exec(line)?.[1] ?? []);
      expect(chains.length).toBeGreaterThan(10);
      expect(chains.filter((chain) => !REMOVED_BY_KUBE_PROXY.test(chain) && chain !== KUBELET_CHAIN)).toEqual([]);
    });

    // A test of its own only where the binary is: what it stands for is the one above.
    const { FAIRLEAD_KUBE_PROXY: kubeProxy } = process.env;
    if (kubeProxy !== undefined) {
      test("kube-proxy --cleanup", async () => {
        const { argvPrefix, env } = lab.namespace("node-a");
        const [program = "nsenter", ...prefix] = argvPrefix;
        await execa(program, [...prefix, kubeProxy, "--cleanup"], { env: { ...env } });
        const left = (await rulesOf(lab)).filter((line) => line.includes("KUBE-") && !line.includes(KUBELET_CHAIN));
        expect(left).toEqual([]);
      });
    }
  });
});

function chainListing(output: string, name: string): string {
  return output.split("\n\n").find((listing) => listing.startsWith(`Chain ${name} `)) ?? "";
}
