import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";

kernelSuite("nf_tables by netlink, on the kernel", () => {
  let seen: Readonly<
    Record<"ip" | "ip6", Record<string, unknown> & { printed: string; refused: readonly string[] }>
  > & {
    readonly large: unknown;
    readonly timed: unknown;
    readonly often: unknown;
  };

  beforeAll(async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("client-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    seen = JSON.parse(stdout);
  });

  test.each(["ip", "ip6"] as const)(
    "%s: a check changes nothing, a commit everything, and a refusal nothing",
    (family) => {
      expect(seen[family]).toMatchObject({
        checked: { generationMoved: false, there: false },
        committed: true,
        unchanged: true,
        gone: true,
      });
    },
  );

  test.each(["ip", "ip6"] as const)("%s: what is read back is what was written", (family) => {
    const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
    expect(seen[family]["table"]).toMatchObject({
      comment: "rules of a test",
      chains: {
        "nat-prerouting": { base: { type: "nat", hook: "prerouting", priority: -100, policy: "accept" } },
        services: { rules: [{ comment: "from outside" }, { expressions: [{}, {}, {}, { to: "verdict" }] }] },
        "endpoints-4": { rules: [{ expressions: [{}, {}, {}, { kind: "numgen", modulus: 4 }, {}, { kind: "nat" }] }] },
      },
      sets: {
        "cluster-ips": { key: [address], comment: "Active ClusterIPs", elements: [{}] },
        "service-ips": {
          data: "verdict",
          elements: [{ value: { kind: "goto", chain: "endpoints-4" }, comment: "default/web" }],
        },
        "endpoints-4": { key: [address, "inet_proto", "inet_service", "integer"], elements: [{}, {}] },
        affinity: { flags: ["dynamic", "timeout"], timeout: 10_800_000 },
      },
    });
  });

  test.each([
    ["ip", "10.96.0.10 . tcp . 80 . 1 : 10.144.2.6 . 8080"],
    ["ip6", "fd00:10:96::10 . tcp . 80 . 1 : fd00:144:0:1::6 . 8080"],
  ] as const)("%s: nft prints it, slots as numbers, and takes what it printed", (family, element) => {
    expect(seen[family].printed).toContain(element);
    expect(seen[family].printed).toContain("typeof");
    expect(seen[family].printed).toContain("ct state new jump services");
  });

  test.each(["ip", "ip6"] as const)("%s: elements are looked up by their keys", (family) => {
    const { found, partly, none } = seen[family];
    expect([found, partly]).toEqual([[expect.anything()], [expect.anything()]]);
    expect(none).toEqual([]);
  });

  test.each(["ip", "ip6"] as const)("%s: an error names what was refused", (family) => {
    const place = `table ${family} fairlead-test: cannot`;
    expect(seen[family].refused).toEqual([
      expect.stringContaining(`ENOENT ${place} add a rule of chain nowhere: ENOENT`),
      expect.stringContaining(`ENOENT ${place} delete elements of set cluster-ips: ENOENT`),
      expect.stringContaining(`EBUSY ${place} delete chain endpoints-4: EBUSY`),
      expect.stringMatching(/^E(LOOP|MLINK) /),
      expect.stringMatching(/^EINVAL .* cannot add elements of set cluster-ips: EINVAL/),
    ]);
  });

  test("times of elements are read and written; only the sets that are wanted are read", () => {
    // Less than the test itself may take has passed.
    const left = (most: number) => expect.toSatisfy((expires) => expires > most - 600_000 && expires <= most);
    const sticky = {
      names: ["sticky"],
      elements: [
        { key: "01000000", expires: left(4_000_000) },
        { key: "02000000", timeout: 3_000_000, expires: left(2_000_000), comment: "x" },
        { key: "03000000", expires: left(10_000_000) },
      ],
    };
    expect(seen.timed).toEqual({ first: sticky, all: ["sticky", "other"], second: sticky, nowhere: [] });
  });

  test("where thousands of messages are refused, the first one is told", () => {
    expect(seen.often).toMatch("ENOENT table ip often: cannot add a rule of chain chain-0: ENOENT");
  });

  test("a transaction larger than a socket's usual buffer goes in one piece", () => {
    expect(seen.large).toEqual({ room: true, elements: 100_000 });
  });
});
