import type { Attributes } from "../../netlink/reader.ts";
import type { AttributeWriter } from "../../netlink/writer.ts";
import type { NftFlowtable } from "../model.ts";
import * as numbers from "./numbers.ts";

const { FLOWTABLE, FLOWTABLE_HOOK } = numbers;

/** What NFT_MSG_NEWFLOWTABLE says behind the table. Where the flowtable exists, it gets the devices in addition. */
export function writeFlowtable({ name, priority, devices, counter }: NftFlowtable, to: AttributeWriter): void {
  to.text(FLOWTABLE.name, name);
  to.nest(FLOWTABLE.hook, (hook) => {
    hook.u32(FLOWTABLE_HOOK.number, numbers.INGRESS).u32(FLOWTABLE_HOOK.priority, priority);
    if (devices.length > 0) writeDevices(devices, hook);
  });
  if (counter) to.u32(FLOWTABLE.flags, numbers.FLOWTABLE_COUNTER);
}

/** What NFT_MSG_DELFLOWTABLE says behind the table to take only these devices out. */
export function writeGoneDevices(name: string, devices: readonly string[], to: AttributeWriter): void {
  to.text(FLOWTABLE.name, name);
  to.nest(FLOWTABLE.hook, (hook) => writeDevices(devices, hook));
}

function writeDevices(devices: readonly string[], hook: AttributeWriter): void {
  hook.nest(FLOWTABLE_HOOK.devices, (list) => {
    for (const device of devices) list.text(numbers.DEVICE_NAME, device);
  });
}

/** A flowtable of a listing, with its devices in the kernel's order. */
export function decodeFlowtable(of: Attributes): NftFlowtable {
  const counter = ((of.u32(FLOWTABLE.flags) ?? 0) & numbers.FLOWTABLE_COUNTER) !== 0;
  return {
    name: of.text(FLOWTABLE.name) ?? "",
    priority: of.nested(FLOWTABLE.hook)?.i32(FLOWTABLE_HOOK.priority) ?? 0,
    devices: decodeDevices(of),
    ...(counter && { counter }),
  };
}

/** In the kernel's order. */
export function decodeDevices(of: Attributes): readonly string[] {
  return of.nested(FLOWTABLE.hook)?.texts(FLOWTABLE_HOOK.devices) ?? [];
}
