import { setTimeout as sleep } from "node:timers/promises";
import type { Argv } from "@fairlead/kernel";
import { able } from "../needs.ts";
import type { Spec } from "../spec.ts";
import { type Attacked, underAttack } from "./under-attack.ts";

/** Where other programs have rules; the last is a chain of their own. */
const PLACES = [
  ["nat", "PREROUTING"],
  ["nat", "OUTPUT"],
  ["nat", "POSTROUTING"],
  ["filter", "INPUT"],
  ["filter", "FORWARD"],
  ["filter", "OUTPUT"],
  ["mangle", "PREROUTING"],
  ["raw", "OUTPUT"],
  ["nat", "OTHERS"],
] as const;

/** What a line-based reader takes for the end of a line, of a table, or for a rule of ours. */
const COMMENTS: readonly string[] = [
  "new\nline",
  "tab\there",
  "escape \u001b[2J",
  'a quote " and a backslash \\',
  "\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -j DROP\nCOMMIT\n*nat\n",
  "carriage\rreturn",
  "\u202egnp.exe",
];

const READ_MS = 2_000;

const TOOLS = ["iptables", "ip6tables"] as const;

async function comment({ scene, node }: Attacked): Promise<number> {
  const rules = PLACES.flatMap(([table, chain]) => COMMENTS.map((text) => ({ table, chain, text })));
  const each = async (verb: "-A" | "-D") => {
    for (const tool of TOOLS)
      for (const { table, chain, text } of rules) await node.run(ruleOf(tool, verb, table, chain, text));
  };
  const chains = async (verb: "-N" | "-X") => {
    for (const tool of TOOLS) await node.run([tool, "-w", "-t", "nat", verb, "OTHERS"]);
  };
  await chains("-N");
  scene.later(() => chains("-X"));
  scene.later(() => each("-D"));
  await each("-A");
  return rules.length * TOOLS.length;
}

function ruleOf(tool: string, verb: string, table: string, chain: string, text: string): Argv {
  return [tool, "-w", "-t", table, verb, chain, "-m", "comment", "--comment", text];
}

const running: Spec = underAttack({
  name: "attack: comments of other programs that look like lines, while the agent runs",
  act: async (attacked) => {
    const rules = await comment(attacked);
    // What an operator asks for when rules are wrong: everything is read.
    process.kill(able(attacked.node.agent.pid)(), "SIGUSR2");
    await sleep(READ_MS);
    return { rules: String(rules), meanwhile: await attacked.change("meanwhile") };
  },
});

const atStart: Spec = underAttack({
  name: "attack: comments of other programs that look like lines, before the agent starts",
  start: async (attacked) => {
    await comment(attacked);
    return {};
  },
  act: async (attacked) => ({ meanwhile: await attacked.change("meanwhile") }),
});

export const hostileComments: readonly Spec[] = [running, atStart];
