import type { ClusterNode } from "@fairlead/lab/provider/cluster";

/** @throws Error when the agent has said that its rules differ, since its log was `before` */
export async function expectNoAlarm({ name, agent }: ClusterNode, before = ""): Promise<void> {
  const lines = (await agent.log()).slice(before.length).split("\n");
  const alarms = lines.filter((line) => /rules (still )?differ/i.test(line));
  if (alarms.length > 0) throw new Error(`wanted no line that the rules of ${name} differ:\n${alarms.join("\n")}`);
}
