import { CommandError, createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ends, iptables } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

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

/**
 * A service with an endpoint in either of two networks of pods, as kube-proxy writes it; from outside it is
 * masqueraded.
 */
const rules = (service: string, pods: string, a: string, b: string) => `*nat
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC - [0:0]
-A PREROUTING -d ${service} -p tcp -m tcp --dport 80 -j KUBE-SVC
-A OUTPUT -d ${service} -p tcp -m tcp --dport 80 -j KUBE-SVC
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-SVC ! -s ${pods} -j KUBE-MARK-MASQ
-A KUBE-SVC -p tcp -m tcp -m statistic --mode random --probability 0.5 -j DNAT --to-destination ${a}
-A KUBE-SVC -p tcp -m tcp -j DNAT --to-destination ${b}
COMMIT
`;

describe.skipIf(CI === "" && !support.ok)(`live trace and routes${support.ok ? "" : ` (${support.reason})`}`, () => {
  let namespace: NetworkNamespace;
  let runner: Runner;

  const setting = (key: string, value: number) => runner.run(["sh", "-c", `echo ${value} > /proc/sys/net/${key}`]);
  const ip = (line: string) => runner.run(["ip", ...line.split(" ")]);

  beforeEach(async () => {
    namespace = await createNamespace();
    runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    for (const [host, pod] of [
      ["cali1", "pod1"],
      ["eth7", "out7"],
    ] as const) {
      await ip(`link add ${host} type veth peer name ${pod}`);
      await ip(`link set ${host} up`);
      await ip(`link set ${pod} up`);
      await setting(`ipv4/conf/${host}/rp_filter`, 0);
    }
    await setting("ipv4/conf/all/rp_filter", 0);
    await setting("ipv4/ip_forward", 1);
    await setting("ipv6/conf/all/forwarding", 1);
    await ip("address add 10.201.0.10/24 dev eth7");
    await ip("-6 address add fd00:201::10/64 dev eth7 nodad");
    await ip("route add default via 10.201.0.1 dev eth7");
    await ip("route add 10.144.1.0/24 dev cali1");
    await ip("route add 10.144.2.0/24 via 10.201.0.11 dev eth7");
    await ip("-6 route add default via fd00:201::1 dev eth7");
    await ip("-6 route add fd00:144:1::/64 dev cali1");
    const input = rules("10.96.0.1/32", "10.144.0.0/16", "10.144.1.5:80", "10.144.2.6:80");
    await runner.run(["iptables-nft-restore"], { input });
    const input6 = rules("fd00:96::1/128", "fd00:144::/32", "[fd00:144:1::5]:80", "[fd00:144:2::6]:80");
    await runner.run(["ip6tables-nft-restore"], { input: input6 });
  });
  afterEach(() => namespace.dispose());

  interface Traced {
    readonly outcomes: readonly {
      readonly verdict: string;
      readonly rejectWith?: string;
      readonly noRoute?: string;
      readonly routeUnknown?: string;
      readonly outInterface?: string;
      readonly path?: string;
      readonly destination: { readonly address: string };
    }[];
  }

  async function ends(from: string, more: readonly string[] = []) {
    const to = from.includes(":") ? "[fd00:96::1]:80" : "10.96.0.1:80";
    const line = ["trace", "--from", from, "--to", to, "-o", "json", ...more];
    const { out, err, code } = await fairlead(line, { runner });
    if (out === "") throw new Error(err);
    const { outcomes }: Traced = JSON.parse(out);
    const texts = outcomes.map(({ verdict, rejectWith, noRoute, destination, outInterface, path }) => {
      const where = verdict === "accept" ? (path === "input" ? "here" : `by ${outInterface}`) : noRoute;
      return [verdict, rejectWith, destination.address, where].filter((part) => part !== undefined).join(" ");
    });
    return { ends: texts.sort(), code };
  }

  const good = ["accept 10.144.1.5 by cali1", "accept 10.144.2.6 by eth7"];

  test("where routes lead there all arrives", async () => {
    for (const from of ["10.144.1.9", "198.51.100.7", "node"])
      expect(await ends(from)).toEqual({ ends: good, code: 0 });
    const good6 = ["accept fd00:144:1::5 by cali1", "accept fd00:144:2::6 by eth7"];
    expect(await ends("fd00:144:1::9")).toEqual({ ends: good6, code: 0 });
  });

  test.each([
    ["unreachable", "reject icmp-host-unreachable 10.144.2.6 an unreachable route to 10.144.2.6"],
    ["prohibit", "reject icmp-admin-prohibited 10.144.2.6 a prohibit route to 10.144.2.6"],
    ["blackhole", "drop 10.144.2.6 a blackhole route to 10.144.2.6"],
  ])("an endpoint behind a route that is %s", async (kind, end) => {
    await ip(`route replace ${kind} 10.144.2.0/24`);
    expect(await ends("10.144.1.9")).toEqual({ ends: [good[0], end], code: 1 });
    // The host's own packet has left its call by then: the caller gets no error.
    expect(await ends("node")).toEqual({ ends: [good[0], end.replace(/^reject \S+/, "drop")], code: 1 });
  });

  test("an endpoint without a route", async () => {
    await ip("route del default");
    await ip("route del 10.144.2.0/24");
    expect(await ends("10.144.1.9")).toEqual({
      ends: [good[0], "reject icmp-net-unreachable 10.144.2.6 no route to 10.144.2.6"],
      code: 1,
    });
  });

  test("the host itself needs a route to the service's own address", async () => {
    await ip("route del default");
    expect(await ends("node")).toEqual({
      ends: ["reject icmp-net-unreachable 10.96.0.1 no route to 10.96.0.1"],
      code: 1,
    });
    const script = `require("net").connect(80, "10.96.0.1").on("error", (error) => process.stdout.write(error.code))`;
    expect((await runner.run([process.execPath, "-e", script])).stdout).toBe("ENETUNREACH");
  });

  test("IPv6: no route, and a blackhole", async () => {
    await ip("-6 route del default");
    expect((await ends("fd00:144:1::9")).ends[1]).toBe("reject icmp6-no-route fd00:144:2::6 no route to fd00:144:2::6");
    await ip("-6 route add blackhole fd00:144:2::/64");
    expect((await ends("fd00:144:1::9")).ends[1]).toBe("drop fd00:144:2::6 a blackhole route to fd00:144:2::6");
  });

  test("a host that forwards nothing", async () => {
    await setting("ipv4/ip_forward", 0);
    await setting("ipv6/conf/all/forwarding", 0);
    const reported = (await ends("10.144.1.9")).ends;
    expect(reported).toHaveLength(2);
    for (const end of reported) expect(end).toMatch(/^drop 10\.144\.\d\.\d this node forwards nothing .*ip_forward/);
    for (const end of (await ends("fd00:144:1::9")).ends)
      expect(end).toMatch(/^drop fd00:144:\d::\d this node forwards nothing: net\.ipv6\.conf\.all\.forwarding is 0$/);
    // Its own packets are not forwarded.
    expect(await ends("node")).toEqual({ ends: good, code: 0 });
  });

  test("a source that rp_filter refuses", async () => {
    await setting("ipv4/conf/cali1/rp_filter", 1);
    const { ends: reported, code } = await ends("198.51.100.7", ["--in-interface", "cali1"]);
    expect(reported).toHaveLength(2);
    for (const end of reported) expect(end).toMatch(/the source 198\.51\.100\.7 is refused on cali1: rp_filter is 1/);
    expect(code).toBe(1);
    expect(await ends("10.144.1.9", ["--in-interface", "cali1"])).toEqual({ ends: good, code: 0 });
  });

  test("rules of policy routing: by mark, by incoming interface, by source", async () => {
    await ip("route add blackhole default table 100");
    await ip("rule add fwmark 0x4000/0x4000 lookup 100");
    const masqueraded = await ends("198.51.100.7");
    expect(masqueraded.ends).toEqual([
      "drop 10.144.1.5 a blackhole route to 10.144.1.5",
      "drop 10.144.2.6 a blackhole route to 10.144.2.6",
    ]);
    expect(await ends("10.144.1.9")).toEqual({ ends: good, code: 0 });
    await ip("rule del fwmark 0x4000/0x4000 lookup 100");
    await ip("route replace default dev eth7 table 100");
    await ip("rule add iif cali1 lookup 100");
    expect((await ends("10.144.1.9")).ends).toEqual(["accept 10.144.1.5 by eth7", good[1]]);
    await ip("rule del iif cali1 lookup 100");
    await ip("rule add from 10.144.1.9 lookup 100");
    expect((await ends("10.144.1.9")).ends).toEqual(["accept 10.144.1.5 by eth7", good[1]]);
  });

  test("what a route of type local covers is for this host", async () => {
    await ip("route add local 10.144.2.0/24 dev lo");
    expect((await ends("10.144.1.9")).ends).toEqual([good[0], "accept 10.144.2.6 here"]);
  });

  test("where the kernel cannot be asked that is said, and exit code 1", async () => {
    const mute: Runner = {
      ...runner,
      run: async (argv, options) => {
        if (argv.includes("-batch")) throw new CommandError({ argv, reason: "exit", exitCode: 255, stderr: "no" });
        return runner.run(argv, options);
      },
    };
    const { out, code } = await fairlead(["trace", "--from", "10.144.1.9", "--to", "10.96.0.1:80"], { runner: mute });
    expect(out).toMatch(/→ 10\.144\.1\.5:80, .*, if routes allow it \(ip -json -force -batch -: exit code 255: no\)/);
    expect(code).toBe(1);
    const wrong = await fairlead(["trace", "--from", "10.144.1.9", "--to", "10.96.0.1:80", "--in-interface", "eth9"], {
      runner,
    });
    expect(wrong.out).toMatch(
      /if routes allow it \(the kernel does not report the route .*Cannot find device "eth9"\)/,
    );
    expect(wrong.code).toBe(1);
  });

  test("the text says where it ends and why", async () => {
    await ip("route replace blackhole 10.144.2.0/24");
    const { out } = await fairlead(["trace", "--from", "10.144.1.9", "--to", "10.96.0.1:80"], { runner });
    expect(out).toContain("50 % drop by routing after PREROUTING: a blackhole route to 10.144.2.6\n");
  });
});
