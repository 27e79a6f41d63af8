import { ROUTE_PROTOCOL, type RoutingCommand } from "./routes.ts";

/** A line for `ip -force -batch -`. */
export function renderRouting(command: RoutingCommand): string {
  if (command.kind === "add-rule" || command.kind === "delete-rule") {
    const { priority, mark, mask, table } = command.rule;
    const verb = command.kind === "add-rule" ? "add" : "delete";
    return `rule ${verb} priority ${priority} fwmark ${mark}/${mask} table ${table} protocol ${ROUTE_PROTOCOL}`;
  }
  const { destination, gateway, interface: device, table, metric, source, onLink } = command.route;
  const verb = command.kind === "set-route" ? "replace" : "delete";
  return [
    `route ${verb} ${destination}`,
    ...(gateway === undefined ? [] : [`via ${gateway}`]),
    `dev ${device} table ${table} protocol ${ROUTE_PROTOCOL}`,
    ...(metric === 0 ? [] : [`metric ${metric}`]),
    ...(source === undefined ? [] : [`src ${source}`]),
    ...(onLink ? ["onlink"] : []),
  ].join(" ");
}
