import type { Backend, ForwardingPlan, IPFamily, ModeFacts, NodePlan, SyncReport } from "@fairlead/core";
import type { Mode } from "../../src/modes/mode.ts";

const FACTS: ModeFacts = {
  name: "memory",
  semantics: { localSourcesShortCut: true, localWithoutEndpoints: "drop", withoutEndpoints: "reject" },
  needs: { iptables: [], nodeAddresses: false, serviceCIDRs: true, kernelParts: [], sysctls: [] },
  keeps: {},
  objects: { rules: [], own: { kinds: ["groups"], help: "Service ports that are kept in memory" } },
  packetCounters: {},
  familiesAtOnce: true,
};

/** A mode that keeps each family's service ports in `memory`, and asks nothing of the node; `nodes` gets the rest. */
export function memoryMode(memory: Map<IPFamily, readonly string[]>, nodes?: Map<IPFamily, NodePlan>): Mode {
  return {
    facts: FACTS,
    async open() {},
    serve: async ({ families }) => ({
      backends: new Map(families.map((family) => [family, memoryBackend(memory, nodes)])),
      familiesAtOnce: FACTS.familiesAtOnce,
    }),
    async removeTables() {
      memory.clear();
      return ["memory"];
    },
  };
}

function memoryBackend(memory: Map<IPFamily, readonly string[]>, nodes?: Map<IPFamily, NodePlan>): Backend {
  const keep = async (plan: ForwardingPlan): Promise<SyncReport> => {
    const names = Array.from(plan.groups.values(), ({ name }) => name);
    memory.set(plan.family, names);
    nodes?.set(plan.family, plan.node);
    return { kind: "full", objects: { groups: { total: names.length, written: names.length } } };
  };
  return {
    semantics: FACTS.semantics,
    sync: keep,
    apply: keep,
    difference: async ({ family }) => (memory.has(family) ? undefined : { what: ["everything"], repaired: false }),
    cleanup: async () => memory.clear(),
  };
}
