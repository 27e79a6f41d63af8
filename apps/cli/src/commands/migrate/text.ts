import type { Outcome } from "../../migrate/migrate.ts";
import type { Step } from "../../migrate/next-step.ts";
import type { MigrationState, NodeState, ProxyName } from "../../migrate/state.ts";
import { tableText } from "../../output/table.ts";

export function nodesText({ nodes }: MigrationState): string {
  const rows = nodes.map((node) => [node.name, node.ready ? "yes" : "no", servedBy(node), node.problem ?? ""]);
  return tableText(["node", "ready", "served by", "problem"], rows);
}

/** By its pods, as they are. */
function servedBy({ pods }: NodeState): string {
  const names = (["kube-proxy", "fairlead"] as const).flatMap((proxy) => {
    const pod = pods[proxy];
    return pod === undefined ? [] : [pod.ready ? proxy : `${proxy} (not ready)`];
  });
  return names.join(", ") || "none";
}

/** What --apply would do. */
export function planText({ nodes }: MigrationState, image: string): string {
  const left = nodes
    .filter(({ label, proven }) => label !== "fairlead" || proven !== "fairlead")
    .map(({ name }) => name);
  if (left.length === 0) return "Every node has Fairlead.\n";
  return [
    "With --apply:",
    "  1. kube-proxy's DaemonSet leaves nodes with the label fairlead.dev/proxy=fairlead; its pods start once more",
    `  2. Fairlead's DaemonSet (${image}) is installed for nodes with that label`,
    `  3. one after the other, verified before and after: ${left.join(", ")}`,
    "  4. nodes to come get Fairlead; kube-proxy's DaemonSet stays, without pods, for --revert",
    "",
  ].join("\n");
}

/** A line of progress; undefined for what others report. */
export function stepText(step: Step): string | undefined {
  switch (step.do) {
    case "install":
      return "Fairlead's objects are written";
    case "uninstall":
      return "Fairlead's objects are removed";
    case "place":
      return `${step.proxy}: ${PLACEMENT_TEXTS[step.placement]}`;
    case "wait":
      return `waiting: ${step.for.join("; ")}`;
    case "check":
      return `${step.node}: verified before its change`;
    case "switch":
      return `${step.node}: gets ${step.to}`;
    case "prove":
      return `${step.node}: verified with ${step.proxy}, and watched for a while`;
    case "put-back":
      return `${step.node}: put back to ${step.to}: ${step.reason}`;
    case "unmark":
      return "labels and marks are taken off the nodes";
    case "stop":
    case "done":
      return undefined;
  }
}

const PLACEMENT_TEXTS = {
  everywhere: "on every node, as before",
  "unless-other": "on nodes that are not the other's",
  labeled: "only on nodes with its label",
} as const;

/** What to do after a failure. */
export const GOES_ON = "Correct that and run the command again: it continues.";

export function outcomeText(outcome: Outcome, goal: ProxyName): string {
  if (outcome.kind === "done") return `Every node, and those to come, has ${goal}.\n`;
  if (outcome.kind === "stopped") return `Stopped: ${outcome.reason}\n${GOES_ON}\n`;
  return "Interrupted between two steps. Run the command again: it continues.\n";
}
