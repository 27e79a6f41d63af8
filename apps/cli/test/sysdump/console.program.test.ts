import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError, type Runner } from "@fairlead/kernel";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addresses } from "../support/addresses.ts";
import { CLUSTER, iptables, stdin } from "../support/listed.ts";
import { printedAddress } from "../support/opened-console.ts";
import { fairlead, started } from "../support/run.ts";

const AGENT = ["--mode", "iptables", ...CLUSTER];
let folder = "";
let archive = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-archived-console-"));
  const file = join(folder, "services.json");
  await writeFile(file, stdin);
  const printed = new Map([
    ["iptables-nft-save -t mangle", "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n"],
    ["iptables-nft-save", iptables],
    ["ip6tables-nft-save", ""],
    ["ip -json address", addresses],
    ["ip -json -4 route show", "[]"],
    ["ip -json -6 route show", "[]"],
    ["ip -oneline address show dev kube-ipvs0", ""],
  ]);
  const answer = (argv: Parameters<Runner["run"]>[0]): string => {
    const text = printed.get(argv.join(" "));
    if (text === undefined) throw new CommandError({ argv, reason: "not-found" });
    return text;
  };
  const runner: Runner = {
    run: async (argv) => ({ stdout: answer(argv), stderr: "" }),
    async *stream(argv) {
      yield answer(argv);
    },
  };
  archive = join(folder, "dump.tar.gz");
  await fairlead(["sysdump", "--live", "-f", file, ...AGENT, "--output-file", archive], { runner });
});
afterAll(() => rm(folder, { recursive: true }));

/** The answer of the console of the archive at a path, as its page gets it. */
async function asked(signal: AbortSignal, path: string): Promise<unknown> {
  await using console = started(signal, ["console", "--no-open", "--sysdump", archive]);
  const { base, token } = await printedAddress(console);
  const init = { method: "POST", body: JSON.stringify({ token }), headers: { origin: new URL(base).origin } };
  const cookie = (await fetch(`${base}session`, init)).headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  return (await fetch(`${base}${path}`, { headers: { cookie } })).json();
}

test("the page traces through the archive's rules", async ({ signal }) => {
  const trace = await asked(signal, "api/trace?from=198.51.100.7&to=203.0.113.10:80");
  expect(trace).toMatchObject({ source: "archive of node-a", command: expect.stringContaining("--sysdump") });
  expect(JSON.stringify(trace)).toContain("10.144.1.5");
});

test.for(["api/flows", "api/doctor"])(
  "%s does not answer for this machine in the place of the node",
  async (path, { signal }) => {
    expect(JSON.stringify(await asked(signal, path))).toContain("an archive has no connections and no processes");
  },
);
