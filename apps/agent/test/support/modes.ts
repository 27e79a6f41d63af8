import { createIptablesBackend, iptablesFacts } from "@fairlead/backend-iptables";
import { createIpvsBackend, ipvsFacts } from "@fairlead/backend-ipvs";
import { nftablesFacts } from "@fairlead/backend-nftables";
import { createTraffic, createUserspaceBackend, userspaceFacts } from "@fairlead/backend-userspace";
import type { FakeSockets } from "@fairlead/backend-userspace/fake";
import type { Clock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily, ModeFacts } from "@fairlead/core";
import type { FakeIptables, FakeNfacct, FakeNftables } from "@fairlead/kernel/fake";
import type { Log } from "../../src/log.ts";
import { foreignChangeOf } from "../../src/modes/ipvs.ts";
import type { ModeRuntime } from "../../src/modes/mode.ts";
import { servingBy } from "../../src/modes/nftables.ts";
import { relayingOf } from "../../src/modes/userspace.ts";
import type { Progress } from "../../src/sync/follower.ts";
import type { fakeIpvs } from "./fake-ipvs.ts";

/** What the backends of tests work with. */
interface FakeNode {
  readonly config: AgentConfig;
  readonly families: readonly IPFamily[];
  readonly tables: Readonly<Record<IPFamily, FakeIptables>>;
  readonly ipvs: ReturnType<typeof fakeIpvs>["ipvs"];
  readonly nfacct: FakeNfacct;
  readonly nftables: FakeNftables;
  readonly log: Log;
  readonly sockets: FakeSockets;
  readonly progress: Progress;
  readonly clock: Clock;
}

/** A mode with backends on kernels in memory and in virtual time. */
export interface ModeOnFakes {
  readonly facts: ModeFacts;
  serve(node: FakeNode): ModeRuntime;
}

const each = <B>(families: readonly IPFamily[], make: (family: IPFamily) => B): ReadonlyMap<IPFamily, B> =>
  new Map(families.map((family) => [family, make(family)]));

const modesOnFakes: readonly ModeOnFakes[] = [
  {
    facts: iptablesFacts,
    serve({ families, tables, nfacct, clock, progress, log }) {
      const counters = async (names: readonly string[]) => {
        for (const name of names) await nfacct.ensure(name);
        return new Set(names);
      };
      const backends = each(families, (family) =>
        createIptablesBackend(tables[family], {
          counters,
          clock,
          turn: progress.turnOf(family),
          onProblem: (problem) => log.warn("Problem in iptables mode", { ipFamily: family, problem }),
        }),
      );
      return { backends, familiesAtOnce: true };
    },
  },
  {
    facts: ipvsFacts,
    serve({ families, tables, ipvs, clock }) {
      const backends = each(families, (family) => createIpvsBackend({ ...ipvs, rules: tables[family] }, { clock }));
      return { backends, familiesAtOnce: true, isForeignChange: foreignChangeOf([...backends.values()]) };
    },
  },
  {
    facts: nftablesFacts,
    serve: ({ nftables, clock, sockets, ...node }) => servingBy(nftables, node, { clock, open: sockets.open }),
  },
  {
    facts: userspaceFacts,
    serve({ families, tables, sockets, clock }) {
      const traffic = createTraffic();
      const backends = each(families, (family) =>
        createUserspaceBackend(tables[family], { open: sockets.open, traffic, clock }),
      );
      return { backends, familiesAtOnce: true, relaying: relayingOf(backends, traffic) };
    },
  },
];

export function modeOnFakes(name: string): ModeOnFakes {
  const found = modesOnFakes.find(({ facts }) => facts.name === name);
  if (found === undefined) throw new Error(`no ${name} mode on fakes`);
  return found;
}
