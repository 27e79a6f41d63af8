import { attribute } from "@fairlead/netfilter/netlink";
import { expect, test } from "vitest";
import { readDeviceNetworks } from "../src/devices.ts";
import { encodeMessage } from "../src/netlink/messages.ts";
import { done, scripted } from "./netlink/scripted.ts";

const NEW_ROUTE = 24;
const [IPV4, IPV6, MPLS] = [2, 10, 28];
const [DESTINATION, DEVICE] = [1, 4];

/** A unicast route of the table `main`, by the device of number 2. */
function route(family: number, length: number, destination: readonly number[]): Buffer {
  const header = Uint8Array.of(family, length, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0);
  const to = destination.length === 0 ? [] : [attribute(DESTINATION, Uint8Array.from(destination))];
  return encodeMessage(NEW_ROUTE, 0, header, Buffer.concat([...to, attribute(DEVICE, Uint8Array.of(2, 0, 0, 0))]));
}

test("routes of both IP families, and none of other families: MPLS labels are no addresses", async () => {
  const routes = [
    route(IPV4, 0, []),
    route(IPV4, 24, [10, 144, 1, 0]),
    route(IPV6, 0, []),
    route(MPLS, 20, [0, 6, 65, 0]),
  ];
  const kernel = scripted(...routes, done, done);
  const socket = await kernel.open();
  const found = await readDeviceNetworks(socket, () => "eth0");
  expect(found.get("eth0")).toEqual({ routes: ["0.0.0.0/0", "10.144.1.0/24", "::/0"], addresses: [] });
});
