import { formatError, parseArguments } from "@fairlead/config";
import { checkCIDR } from "@fairlead/endpoint-filter";
import { filterSettings, networksSettings } from "@fairlead/intake";
import { RequestError } from "../../server/request-error.ts";
import type { AgentSetup } from "../agent-setup.ts";

/** A hypothetical change; "" in each: none. */
export interface Change {
  /** Manifests of objects that come, or take the place of those of their names. */
  readonly manifests: string;
  /** One more CIDR of another network. */
  readonly excludeCIDR: string;
  /** A file of --config, in place of the agents' configuration. The mode stays. */
  readonly configuration: string;
}

/**
 * How the agents would be set up.
 *
 * @throws RequestError saying what would be right
 */
export function changedSetup(setup: AgentSetup, { configuration, excludeCIDR }: Change): AgentSetup {
  const configured = configuration.trim() === "" ? setup : configuredSetup(setup, configuration);
  const { config, filter: before } = configured;
  const filter = filterWith(before, excludeCIDR);
  return { ...configured, filter, networks: networksSettings(config, filter) };
}

function configuredSetup(setup: AgentSetup, text: string): AgentSetup {
  const parsed = parseArguments(["--config=configuration"], { readFile: () => text, version: "" });
  if (parsed.kind === "invalid") throw new RequestError(400, parsed.errors.map(formatError).join("; "));
  if (parsed.kind !== "run") throw new RequestError(400, "configuration: is not a file of --config");
  const config = { ...parsed.config, mode: setup.mode };
  const filter = filterSettings(config);
  if (!filter.ok) throw new RequestError(400, filter.errors.join("; "));
  return { ...setup, config, filter: filter.options };
}

function filterWith(filter: AgentSetup["filter"], excludeCIDR: string): AgentSetup["filter"] {
  if (excludeCIDR.trim() === "") return filter;
  const checked = checkCIDR(excludeCIDR.trim());
  if ("problem" in checked) throw new RequestError(400, `CIDR ${excludeCIDR}: ${checked.problem}`);
  return { ...filter, excludeCIDRs: [...filter.excludeCIDRs, checked.cidr] };
}
