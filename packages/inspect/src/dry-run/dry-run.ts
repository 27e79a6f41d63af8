import { createIptablesBackend } from "@fairlead/backend-iptables";
import { createIpvsBackend } from "@fairlead/backend-ipvs";
import type { AgentConfig } from "@fairlead/config";
import type { ForwardingPlan } from "@fairlead/core";
import type { Mode } from "../modes.ts";
import { emptyIpvs } from "./empty-ipvs.ts";
import { emptyRules } from "./empty-rules.ts";
import { type ProgramText, ProgramTexts } from "./program-texts.ts";

export interface DryRunOptions {
  readonly mode: Mode;
  readonly config: AgentConfig;
  /** Rules count with the nfacct objects that kube-proxy has: the kernel must have them. Iptables mode alone. */
  readonly counters?: boolean;
}

/** What the agent would give to which programs, in its order, on a node that nobody has programmed yet. */
export async function dryRun(plan: ForwardingPlan, options: DryRunOptions): Promise<readonly ProgramText[]> {
  const texts = new ProgramTexts();
  await RUNS[options.mode](plan, options, texts);
  return texts.all();
}

type Run = (plan: ForwardingPlan, options: DryRunOptions, texts: ProgramTexts) => Promise<unknown>;

const RUNS: Readonly<Record<Mode, Run>> = {
  iptables: (plan, { config, counters = false }, texts) => {
    const { masqueradeBit, localhostNodePorts } = config.iptables;
    const { tcpBeLiberal } = config.conntrack;
    const backend = createIptablesBackend(emptyRules(plan.family, texts), {
      masqueradeBit,
      localhostNodePorts,
      tcpBeLiberal,
      counters: async (names) => new Set(counters ? names : []),
    });
    return backend.sync(plan);
  },
  ipvs: (plan, { config }, texts) => {
    const { scheduler, excludeCIDRs } = config.ipvs;
    const backend = createIpvsBackend(emptyIpvs(plan.family, texts), {
      masqueradeBit: config.masqueradeBit,
      ...(scheduler === "" ? {} : { scheduler }),
      excludeCIDRs,
    });
    return backend.sync(plan);
  },
};
