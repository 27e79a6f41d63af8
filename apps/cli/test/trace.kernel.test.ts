import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairlead } from "./support/run.ts";
import { ends, iptables } from "./support/told.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();

describe.skipIf(CI === "" && !support.ok)(`on a real kernel${support.ok ? "" : ` (${support.reason})`}`, () => {
  let namespace: NetworkNamespace;
  let runner: Runner;

  beforeAll(async () => {
    namespace = await createNamespace();
    runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "link", "add", "cali1", "type", "veth", "peer", "name", "pod1"]);
    await runner.run(["ip", "link", "set", "cali1", "up"]);
    await runner.run(["ip", "address", "add", "10.201.0.10/24", "dev", "lo"]);
    await runner.run(["ip", "route", "add", "10.144.1.0/24", "dev", "cali1"]);
    await runner.run(["ip", "route", "add", "10.144.2.0/24", "dev", "cali1"]);
    await runner.run(["ip", "route", "add", "10.96.0.0/16", "dev", "cali1", "src", "10.201.0.10"]);
    await runner.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    await runner.run(["ip", "link", "set", "pod1", "up"]);
    const rules = iptables.replaceAll(/ -m nfacct --nfacct-name +\S+/g, "");
    await runner.run(["iptables-nft-restore"], { input: rules });
  });
  afterAll(() => namespace.dispose());

  test("addresses and routes are the host's own", async () => {
    const { out } = await fairlead(["trace", "--from", "10.144.1.9", "--to", "10.96.1.10:80", "-o", "json"], {
      runner,
    });
    expect(JSON.parse(out)).toMatchObject({
      packet: { inInterface: "cali1" },
      outcomes: [{ outInterface: "cali1" }, { outInterface: "cali1" }],
    });
    const port = await fairlead(["trace", "--from", "outside", "--to", "10.201.0.10:30110", "-o", "json"], { runner });
    expect(ends(port.out)).toHaveLength(2);
  });

  test("doctor looks at it, and says what to do", async () => {
    await runner.run(["nft", "add", "table", "inet", "firewalld"]);
    const { out, code } = await fairlead(
      ["doctor", "--cluster-cidr", "10.144.0.0/16", "--service-cidr", "10.144.9.0/24", "-o", "json"],
      { runner, env: { KUBECONFIG: "/nowhere" } },
    );
    const found: readonly { readonly check: string; readonly state: string; readonly found: string }[] =
      JSON.parse(out);
    const of = (check: string) => found.find((one) => one.check === check);
    expect(of("iptables")).toMatchObject({ state: "good" });
    expect(of("nft tables of others")).toMatchObject({ state: "warning", found: "inet firewalld" });
    expect(of("connection tracking")).toMatchObject({ state: "good" });
    expect(of("route to pods in 10.144.0.0/16")).toMatchObject({ state: "good" });
    expect(of("CIDRs of services")).toMatchObject({ state: "bad", found: expect.stringContaining("10.144.9.0/24") });
    expect(of("API server")).toMatchObject({ state: "bad" });
    expect(code).toBe(1);
  });
});
