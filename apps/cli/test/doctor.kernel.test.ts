import { createRunner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";

const HOST = ["doctor", "--cluster-cidr", "10.144.0.0/16", "--service-cidr", "10.96.0.0/12"];

const support = await namespaceSupport();
const { CI = "" } = process.env;

describe.skipIf(CI === "" && !support.ok)(`on a real kernel${support.ok ? "" : ` (${support.reason})`}`, () => {
  let namespace: NetworkNamespace;

  beforeAll(async () => {
    namespace = await createNamespace();
  });
  afterAll(() => namespace.dispose());

  test("Cilium's chains are found in the namespace's own rules", async () => {
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const sign = "Cilium in kube-proxy's place: there are its chains: CILIUM_INPUT";
    const noCluster = { runner, env: { KUBECONFIG: "/does/not/exist" } };
    expect((await fairlead(HOST, noCluster)).out).not.toContain(sign);
    await runner.run(["iptables-nft", "-N", "CILIUM_INPUT"]);
    expect((await fairlead(HOST, noCluster)).out).toContain(sign);
  });
});
