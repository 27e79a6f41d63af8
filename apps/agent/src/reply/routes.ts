import type { ReplyViaSettings } from "@fairlead/config";
import type { MarkRule, RoutingCommand, RoutingState, TableRoute } from "@fairlead/kernel";
import type { Uplink } from "./uplinks.ts";

/**
 * What takes the routes and rules of one family from what they are to what they have to be: routes come before the
 * rules that lead to them, and go after them.
 */
export function routingCommands(
  uplinks: readonly Uplink[],
  { markMask, rulePriority }: Pick<ReplyViaSettings, "markMask" | "rulePriority">,
  state: RoutingState,
): readonly RoutingCommand[] {
  const routes = uplinks.flatMap((uplink) => routesOf(uplink, state));
  const rules = uplinks
    .filter(({ ours, table }) => !ours || routes.some((route) => route.table === table))
    .map(({ mark, table }): MarkRule => ({ priority: rulePriority, mark, mask: markMask, table }));
  const present = new Set(state.own.map(routeText));
  const wanted = new Set(routes.map(placeText));
  const wantedRules = new Set(rules.map(ruleText));
  const presentRules = new Set(state.rules.map(ruleText));
  return [
    ...routes
      .filter((route) => !present.has(routeText(route)))
      .map((route): RoutingCommand => ({ kind: "set-route", route })),
    ...rules
      .filter((rule) => !presentRules.has(ruleText(rule)))
      .map((rule): RoutingCommand => ({ kind: "add-rule", rule })),
    ...state.rules
      .filter((rule) => !wantedRules.has(ruleText(rule)))
      .map((rule): RoutingCommand => ({ kind: "delete-rule", rule })),
    ...state.own
      .filter((route) => !wanted.has(placeText(route)))
      .map((route): RoutingCommand => ({ kind: "delete-route", route })),
  ];
}

/** Everything that is there, away. */
export function removal({ rules, own }: Pick<RoutingState, "rules" | "own">): readonly RoutingCommand[] {
  return [
    ...rules.map((rule): RoutingCommand => ({ kind: "delete-rule", rule })),
    ...own.map((route): RoutingCommand => ({ kind: "delete-route", route })),
  ];
}

/** Of several routes to one place with one metric the kernel takes the first. */
function routesOf({ interface: name, table, ours }: Uplink, { main }: RoutingState): readonly TableRoute[] {
  if (!ours) return [];
  const routes = new Map<string, TableRoute>();
  for (const route of main) {
    if (route.interface !== name || MULTICAST.test(route.destination)) continue;
    const copied = { ...route, table };
    if (!routes.has(placeText(copied))) routes.set(placeText(copied), copied);
  }
  return [...routes.values()];
}

/** No reply goes there. Link-local routes stay: without one a reply to a link-local client goes to the gateway. */
const MULTICAST = /^ff[0-9a-f]{2}:/i;

/** What makes a route another one, and not another version of it. */
function placeText({ destination, table, metric }: TableRoute): string {
  return `${destination} ${table} ${metric}`;
}

function routeText(route: TableRoute): string {
  const { gateway = "", source = "", onLink = false } = route;
  return `${placeText(route)} ${route.interface} ${gateway} ${source} ${onLink}`;
}

function ruleText({ priority, mark, mask, table }: MarkRule): string {
  return `${priority} ${mark}/${mask} ${table}`;
}
