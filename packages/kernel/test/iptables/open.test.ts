import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FakeIptables, FakeRunner, type ProgramAnswer } from "../../src/fake/index.ts";
import { detectVariant, IptablesError, openIptables, openIptablesInUse, type TablesThere } from "../../src/index.ts";
import { cutTransactions } from "../../src/iptables/open.ts";
import { cases } from "./cases.ts";
import { checkCase, checkLooks } from "./check-case.ts";

const NFT = "iptables v1.8.9 (nf_tables)\n";
const LEGACY = "iptables v1.8.9 (legacy)\n";
const HINT = "*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
const CANARY = "*mangle\n:PREROUTING ACCEPT [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n";
const rules = (count: number) => `*filter\n:INPUT ACCEPT [0:0]\n${"-A INPUT -j ACCEPT\n".repeat(count)}COMMIT\n`;

describe("which variant the host uses", () => {
  test.for<[string, Record<string, string>, string]>([
    ["kubelet's hint in nft", { "iptables-nft-save": HINT, "iptables-legacy-save": rules(50) }, "nft"],
    ["kubelet's canary in nft, IPv6", { "ip6tables-nft-save": CANARY, "iptables-legacy-save": HINT }, "nft"],
    ["kubelet's hint in legacy", { "iptables-nft-save": rules(50), "iptables-legacy-save": HINT }, "legacy"],
    ["kubelet's canary in legacy, IPv6", { "iptables-nft-save": rules(50), "ip6tables-legacy-save": CANARY }, "legacy"],
    ["more rules in legacy", { "iptables-nft-save": rules(2), "iptables-legacy-save": rules(3) }, "legacy"],
    ["more rules in nft", { "iptables-nft-save": rules(3), "iptables-legacy-save": rules(3) }, "nft"],
    [
      "rules of both families count",
      { "iptables-nft-save": rules(3), "iptables-legacy-save": rules(2), "ip6tables-legacy-save": rules(2) },
      "legacy",
    ],
    ["no rules at all", {}, "nft"],
    ["a chain that only begins like the hint", { "iptables-legacy-save": HINT.replace("HINT", "HINTS") }, "nft"],
  ])("%s", async ([, programs, expected]) => {
    expect(await detectVariant(new FakeRunner(programs))).toBe(expected);
  });

  test("asks legacy for no single table, which would make the kernel create it", async () => {
    const runner = new FakeRunner({ "iptables-legacy-save": "", "ip6tables-legacy-save": "" });
    await detectVariant(runner);
    const asked = runner.faults.calls.map(({ argv }) => argv).filter(([program]) => program.includes("legacy"));
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.every((argv) => argv.length === 1)).toBe(true);
  });
});

describe("the variants that are in use", () => {
  const inUse = async (programs: Record<string, ProgramAnswer>) => {
    const clients = await openIptablesInUse(new FakeRunner(programs), { family: "IPv4" });
    return clients.map(({ variant }) => variant);
  };
  const both = { "iptables-nft": NFT, "iptables-legacy": LEGACY };

  test("nft always, legacy where it has tables", async () => {
    expect(await inUse({ ...both, "iptables-legacy-save": rules(0) })).toEqual(["nft", "legacy"]);
    expect(await inUse({ ...both, "iptables-legacy-save": "" })).toEqual(["nft"]);
    expect(await inUse({ ...both, "iptables-legacy-save": { exitCode: 3, stderr: "Permission denied" } })).toEqual([
      "nft",
    ]);
    expect(await inUse({ "iptables-legacy": LEGACY, "iptables-legacy-save": "" })).toEqual([]);
  });

  test("no tools at all is an error", async () => {
    await expect(inUse({})).rejects.toMatchObject({ kind: "not-installed" });
  });

  test.for<[string, boolean | undefined, boolean | undefined, readonly string[], number]>([
    ["no tool is asked where nothing is there", false, false, [], 0],
    ["nft's only where it has something", true, false, ["nft"], 0],
    ["legacy's only where it has something", false, true, ["legacy"], 0],
    ["what is not known is asked", undefined, undefined, ["nft"], 3],
  ])("%s", async ([, nft, legacy, expected, processes]) => {
    const runner = new FakeRunner({ ...both, "iptables-legacy-save": "" });
    const areThere: TablesThere = async (_, variant) => (variant === "nft" ? nft : legacy);
    const clients = await openIptablesInUse(runner, { family: "IPv4", areThere });
    expect(clients.map(({ variant }) => variant)).toEqual(expected);
    expect(runner.faults.calls).toHaveLength(processes);
  });

  test("tables that are there, and no tools for them, are an error once one is needed", async () => {
    const clients = await openIptablesInUse(new FakeRunner({}), { family: "IPv4", areThere: async () => true });
    expect(clients).toHaveLength(2);
    for (const client of clients) await expect(client.save("nat")).rejects.toMatchObject({ kind: "not-installed" });
  });

  test("lines that are not read look for no tool", async () => {
    const runner = new FakeRunner({});
    const [client] = await openIptablesInUse(runner, { family: "IPv4", areThere: async () => true });
    const read = client?.saveLines("nat")[Symbol.asyncIterator]();
    await read?.return?.();
    expect(runner.faults.calls).toEqual([]);
  });

  test("tools are looked for once, when one is needed first", async () => {
    const runner = new FakeRunner({ ...both, "iptables-nft-save": "" });
    const areThere: TablesThere = async (_, variant) => variant === "nft";
    const [client] = await openIptablesInUse(runner, { family: "IPv4", areThere });
    await client?.save("nat");
    await client?.save("filter");
    expect(runner.faults.calls.map(({ argv }) => argv.join(" "))).toEqual([
      "iptables-nft --version",
      "iptables-nft-save -t nat",
      "iptables-nft-save -t filter",
    ]);
  });
});

describe("chains that the kernel reports itself", () => {
  const open = async (names: readonly string[] | undefined) => {
    const runner = new FakeRunner({ "iptables-nft": NFT, "iptables-nft-save": ":MINE - [0:0]\n" });
    const chainsThere = () => ({
      all: async () => names && new Set(names),
      has: async (_: string, chain: string) => names?.includes(chain),
    });
    const client = await openIptables(runner, { family: "IPv4", variant: "nft", chainsThere });
    const opened = runner.faults.calls.length;
    return { client, processes: () => runner.faults.calls.length - opened };
  };

  test("no tool is asked for names, nor for a chain that is not there", async () => {
    const { client, processes } = await open(["INPUT", "THEIRS"]);
    expect(await client.chains("nat")).toEqual(new Set(["INPUT", "THEIRS"]));
    expect(await client.list("nat", "MINE")).toBeUndefined();
    expect(processes()).toBe(0);
  });

  test("the tool is asked where it does not", async () => {
    const { client, processes } = await open(undefined);
    expect(await client.chains("nat")).toContain("MINE");
    expect(processes()).toBe(1);
  });
});

describe("a restore's wait", () => {
  test.for<["nft" | "legacy", string]>([
    ["nft", "5"],
    // Its alarm would otherwise cut a long payload off.
    ["legacy", "300"],
  ])("%s: -w %s", async ([variant, seconds]) => {
    const program = `iptables-${variant}`;
    const runner = new FakeRunner({ [program]: variant === "nft" ? NFT : LEGACY, [`${program}-restore`]: "" });
    await (await openIptables(runner, { family: "IPv4", variant })).restore("*nat\nCOMMIT\n");
    expect(runner.faults.calls.at(-1)?.argv).toEqual([`${program}-restore`, "--noflush", "--counters", "-w", seconds]);
  });
});

describe("choice of the tools", () => {
  const open = (programs: Record<string, ProgramAnswer>, variant?: "nft" | "legacy") =>
    openIptables(new FakeRunner(programs), { family: "IPv4", ...(variant && { variant }) });

  test("both there: as the host does, or as wanted", async () => {
    const both = { "iptables-nft": NFT, "iptables-legacy": LEGACY, "iptables-legacy-save": HINT };
    expect((await open(both)).variant).toBe("legacy");
    expect((await open(both, "nft")).variant).toBe("nft");
  });

  test("one there: that one, whatever the host does", async () => {
    expect((await open({ "iptables-nft": NFT, "iptables-legacy-save": HINT })).variant).toBe("nft");
    expect((await open({ iptables: LEGACY })).variant).toBe("legacy");
    expect((await open({ iptables: NFT })).variant).toBe("nft");
  });

  test("a kernel whose nf_tables has no nat: legacy, unless nft is wanted", async () => {
    const stderr =
      "iptables-nft-restore v1.8.9 (nf_tables): \nline 2: TABLE_ADD failed (Operation not supported): table nat\n" +
      "line 2: CHAIN_USER_ADD failed (No such file or directory): chain FAIRLEAD-PROBE\n";
    const without = { "iptables-nft": NFT, "iptables-legacy": LEGACY, "iptables-nft-restore": { stderr, exitCode: 4 } };
    expect((await open(without)).variant).toBe("legacy");
    const wanted = await open(without, "nft");
    await expect(wanted.restore("*nat\n:X - [0:0]\nCOMMIT\n")).rejects.toMatchObject({
      kind: "no-table",
      message: expect.stringContaining("the legacy variant"),
    });
    const denied = {
      stderr: "Could not fetch rule set generation id: Permission denied (you must be root)",
      exitCode: 4,
    };
    expect((await open({ ...without, "iptables-nft-restore": denied })).variant).toBe("nft");
  });

  test("a plain iptables is used by its own name", async () => {
    const runner = new FakeRunner({ iptables: NFT, "iptables-save": "*nat\n:X - [0:0]\nCOMMIT\n" });
    const client = await openIptables(runner, { family: "IPv4" });
    expect(await client.chains("nat")).toContain("X");
  });

  test("none: what installs it", async () => {
    const error = await open({}).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(IptablesError);
    expect(error).toMatchObject({
      kind: "not-installed",
      message: expect.stringContaining("apt-get install iptables"),
    });
    await expect(open({ iptables: NFT }, "legacy")).rejects.toMatchObject({ kind: "not-installed" });
  });

  test("too old", async () => {
    const error = open({ iptables: "iptables v1.6.1\n" });
    await expect(error).rejects.toMatchObject({
      kind: "too-old",
      message: "iptables 1.6.1 is too old, at least 1.8.7 is needed",
    });
    await expect(open({ iptables: "iptables v1.8.10 (nf_tables)\n" })).resolves.toMatchObject({ variant: "nft" });
  });
});

describe("what it reports when it fails", () => {
  /** Words of iptables 1.8.9, both variants. */
  test.for<[string, string, string, RegExp]>([
    [
      "no rights (nft)",
      "iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)",
      "no-permission",
      /CAP_NET_ADMIN/,
    ],
    [
      "no rights (legacy)",
      "iptables-save v1.8.9 (legacy): Cannot initialize: Permission denied (you must be root)",
      "no-permission",
      /CAP_NET_ADMIN/,
    ],
    [
      "no rights for the lock file",
      "Fatal: can't open lock file /run/xtables.lock: Permission denied",
      "no-permission",
      /\/run\/xtables.lock.*XTABLES_LOCKFILE/,
    ],
    [
      "the lock is taken",
      "Can't lock /run/xtables.lock: Resource temporarily unavailable\nAnother app is currently holding the xtables lock. Stopped waiting after 5s.",
      "locked",
      /holds the xtables lock/,
    ],
    [
      "no such table",
      "iptables v1.8.9 (legacy): can't initialize iptables table `nat': Table does not exist (do you need to insmod?)\nPerhaps iptables or your kernel needs to be upgraded.",
      "no-table",
      /modprobe iptable_nat/,
    ],
    [
      "table cannot be opened",
      "iptables-restore v1.8.9 (legacy): iptables-restore: unable to initialize table 'nat'\nError occurred at line: 1",
      "no-table",
      /CAP_NET_ADMIN or the kernel module iptable_nat/,
    ],
    [
      "no nf_tables",
      "iptables-nft-restore v1.8.9 (nf_tables): Could not fetch rule set generation id: Invalid argument",
      "no-table",
      /modprobe nf_tables/,
    ],
    [
      "something new",
      "iptables-nft-restore v1.9.0 (nf_tables): the moon is in the wrong phase",
      "failed",
      /the moon is in the wrong phase/,
    ],
  ])("%s", async ([, stderr, kind, message]) => {
    const runner = new FakeRunner({ "iptables-nft": NFT, "iptables-nft-restore": { stderr, exitCode: 4 } });
    const client = await openIptables(runner, { family: "IPv4" });
    const error: unknown = await client.restore("*nat\nCOMMIT\n").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind, message: expect.stringMatching(message), cause: { exitCode: 4 } });
  });

  test("a restore that is killed is no refusal", async () => {
    const runner = new FakeRunner({ "iptables-nft": NFT, "iptables-nft-restore": "" });
    const client = await openIptables(runner, { family: "IPv4" });
    runner.faults.failNext({ kind: "kill" });
    await expect(client.restore("*nat\nCOMMIT\n")).rejects.toMatchObject({
      kind: "failed",
      cause: { signal: "SIGKILL" },
    });
  });

  test("lines of large payloads are numbered right, and known near the end", async () => {
    const filler = `-A A -m comment --comment "${"x".repeat(200)}" -j ACCEPT\n`;
    const payload = [
      "*nat\n:A - [0:0]\n",
      ...Array.from({ length: 50_000 }, () => filler),
      "-A A -j NOPE\n",
      "COMMIT\n",
    ];
    const say = (line: number) => ({ stderr: `iptables-nft-restore: line ${line} failed: no`, exitCode: 1 });
    const runner = new FakeRunner({ "iptables-nft": NFT });
    const client = await openIptables(runner, { family: "IPv4" });
    runner.install("iptables-nft-restore", say(50_003));
    await expect(client.restore(payload)).rejects.toMatchObject({ line: 50_003, text: "-A A -j NOPE" });
    runner.install("iptables-nft-restore", say(7));
    await expect(client.restore(payload)).rejects.toMatchObject({ line: 7, text: undefined });
  });
});

const chain = (at: number) => `KUBE-SEP-${at}`;
const endpointRule = (at: number, port: number) =>
  `-A ${chain(at)} -p tcp -j DNAT --to-destination 10.1.0.${at}:${port}`;

/** Chains with so many rules each, in one transaction. */
function payload(counts: readonly number[]): string {
  const fills = counts.flatMap((rules, at) => [
    `:${chain(at)} - [0:0]`,
    ...Array.from({ length: rules }, (_, port) => endpointRule(at, port + 1)),
  ]);
  return ["*nat", ...fills, "COMMIT", ""].join("\n");
}

const counts = fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 20 });
const MOST_TRIES = 20;

/** @returns how many times it was refused */
async function restoreUntilTaken(iptables: FakeIptables, text: string): Promise<number> {
  for (let refused = 0; refused < MOST_TRIES; refused++) {
    const error = await iptables.restore(text).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) return refused;
    expect(error).toMatchObject({ kind: "too-large" });
  }
  throw new Error(`refused ${MOST_TRIES} times`);
}

describe("a kernel that takes small transactions only", () => {
  test("gets what any other gets, and the size is remembered", async () => {
    await fc.assert(
      fc.asyncProperty(counts, fc.integer({ min: 80, max: 2_000 }), async (given, room) => {
        const small = new FakeIptables({ family: "IPv4", room });
        const any = new FakeIptables({ family: "IPv4" });
        const text = payload(given);
        await any.restore(text);
        await restoreUntilTaken(small, text);
        expect(small.ruleSet()).toEqual(any.ruleSet());
        expect(await restoreUntilTaken(small, text)).toBe(0);
      }),
    );
  });

  test("each refusal halves: the error says of what, and to what", async () => {
    const small = new FakeIptables({ family: "IPv4", room: 500 });
    const text = payload([12]);
    const size = text.length - "*nat\nCOMMIT\n".length;
    await expect(small.restore(text)).rejects.toThrow(`has ${size} characters`);
    expect(size).toBeGreaterThan(500);
    expect(size).toBeLessThan(1000);
    expect(await restoreUntilTaken(small, text)).toBe(0);
  });

  test("a single line that is too large is named, and the size stays", async () => {
    const small = new FakeIptables({ family: "IPv4", room: 200 });
    const long = `-A ${chain(0)} -m comment --comment "${"x".repeat(200)}" -j RETURN`;
    await restoreUntilTaken(small, payload([12]));
    const refused = await small.restore(["*nat", `:${chain(0)} - [0:0]`, long, "COMMIT", ""].join("\n")).catch(String);
    const again = await small.restore(["*nat", long, "COMMIT", ""].join("\n")).catch(String);
    expect([refused, again]).toEqual([expect.stringContaining(long), expect.stringContaining("by itself")]);
    expect(await restoreUntilTaken(small, payload([12]))).toBe(0);
  });
});

describe("cut transactions", () => {
  test("have at most so many characters, or one line, and hold the same lines in the same order", async () => {
    await fc.assert(
      fc.asyncProperty(counts, fc.integer({ min: 1, max: 2_000 }), async (given, most) => {
        const text = payload(given);
        const transactions = await cut(text, most);
        expect(transactions.flat()).toEqual(text.split("\n").slice(1, -2));
        const sizes = transactions.map((lines) => lines.join("\n").length + 1);
        expect(transactions.filter((lines, at) => (sizes[at] ?? 0) > most && lines.length > 1)).toEqual([]);
      }),
    );
  });

  test("leave a chain whole that fits", async () => {
    await fc.assert(
      fc.asyncProperty(counts, async (given) => {
        for (const lines of await cut(payload(given), 13 * 80)) expect(lines[0]).toMatch(/^:/);
      }),
    );
  });
});

/** @returns the commands of each transaction */
async function cut(text: string, most: number): Promise<readonly (readonly string[])[]> {
  let written = "";
  for await (const piece of cutTransactions([text], most)) written += piece;
  return written
    .split("*nat\n")
    .slice(1)
    .map((section) => section.trimEnd().split("\n").slice(0, -1));
}

for (const family of ["IPv4", "IPv6"] as const) {
  for (const variant of ["nft", "legacy"] as const) {
    describe(`in memory: ${family}, ${variant}`, () => {
      const client = () => new FakeIptables({ family, variant, lacking: ["ipvs", "nosuchmatch"] });
      test.for(cases)("$name", (given) => checkCase(client(), given, { isFake: true }));
      test("chains are asked for by name, and one is not there", () => checkLooks(client()));
    });
  }
}
