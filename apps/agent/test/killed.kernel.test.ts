/** An agent that is killed with -9 in the middle of its writes, again and again, and the one that comes after it. */

import { endpointSlice, service } from "@fairlead/testkit";
import { runs } from "@fairlead/tooling/runs";
import { expect, test } from "vitest";
import { onBundleNode, pidOf } from "./support/bundle-node.ts";

const SERVICES = 600;
const KILLS = 5;

/** The same services with other endpoints in each version: every start has to write all of them. */
function manifestOf(version: number): string {
  const items = Array.from({ length: SERVICES }, (_, at) => {
    const [name, low] = [`many-${at}`, `${at >> 8}.${at & 255}`];
    const ports = [{ name: "http", port: 80 }];
    const endpoints = [{ address: `10.${170 + version}.${low}` }, { address: `10.${180 + version}.${low}` }];
    return [
      service(name, { namespace: "many", clusterIPs: [`10.101.${low}`], ports }),
      endpointSlice(`${name}-1`, { namespace: "many", service: name, family: "IPv4", ports, endpoints }),
    ];
  });
  return JSON.stringify({ apiVersion: "v1", kind: "List", items: items.flat() });
}

const MODES = {
  iptables: ["iptables-save"],
  nftables: ["nft", "list", "ruleset"],
} as const;
type Mode = keyof typeof MODES;

onBundleNode("an agent that is killed while it writes", ({ inside, manifest, running, cleanUp }) => {
  const listing = async (mode: Mode) => (await inside().run(MODES[mode])).stdout;
  const start = (mode: Mode) =>
    running([
      `--proxy-mode=${mode}`,
      "--manifests=manifests",
      `--state-dir=${mode}`,
      "--cluster-cidr=10.160.0.0/11",
      "-v=2",
    ]);

  async function served(mode: Mode): Promise<readonly string[]> {
    const log: string[] = [];
    let [state, families] = ["", 0];
    for await (const line of start(mode)) {
      log.push(line);
      if (line.includes('"Rules are in place"')) families += 1;
      if (families < 2 || state !== "") continue;
      state = await listing(mode);
      process.kill(pidOf(log), "SIGKILL");
    }
    return normal(state);
  }

  /** @returns how many endpoints of the version were written when it was killed */
  async function killed(mode: Mode, version: number, share: number): Promise<number> {
    const endpoint = new RegExp(`\\b10\\.${170 + version}\\.\\d+\\.\\d+`, "g");
    const written = async () => new Set((await listing(mode)).match(endpoint)).size;
    const log: string[] = [];
    let seen = 0;
    for await (const line of start(mode)) {
      log.push(line);
      if (!line.includes("writing rules")) continue;
      while (share > 0 && seen < share * SERVICES) seen = await written();
      process.kill(pidOf(log), "SIGKILL");
    }
    return seen;
  }

  test.for(Object.keys(MODES) as Mode[])(
    "%s mode: what the next one leaves is what a first one writes",
    async (mode, { annotate }) => {
      const seen: number[] = [];
      const kills = runs(KILLS);
      for (let at = 0; at < kills; at++) {
        await manifest("many.json", manifestOf(at % 2));
        seen.push(await killed(mode, at % 2, at % 7 === 0 ? 0 : Math.random()));
      }
      const left = await served(mode);
      await cleanUp();
      expect(left).toEqual(await served(mode));
      await cleanUp();
      await annotate(`written when it was killed, of ${SERVICES}: ${seen.join(", ")}`);
    },
  );
});

function normal(listing: string): readonly string[] {
  return listing
    .split("\n")
    .flatMap((line) => line.split(/,(?= )|(?<=\{)/))
    .map((line) =>
      line
        .replace(/\[\d+:\d+\]|packets \d+ bytes \d+/g, "")
        .replace(/[{}]/g, "")
        .trim(),
    )
    .filter((line) => line !== "" && !line.startsWith("#"))
    .sort();
}
