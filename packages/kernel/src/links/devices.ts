import { sleep, type Timers } from "@fairlead/base";
import { list } from "../netlink/list.ts";
import { GROUPS, LONGEST_TOLD, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
import { decodeReplies } from "../netlink/messages.ts";
import type { OpenNetlink } from "../netlink/socket.ts";
import { deviceIn, deviceKindIn, deviceMasterIn, encodeDeviceDump, indexIn, isAboutDevice } from "./messages.ts";
import { TYPES } from "./numbers.ts";

/** A device of a network namespace, as far as its role is concerned. */
export interface NetworkDevice {
  /** Unique in its network namespace. */
  readonly name: string;
  /** The kernel's number: one that goes and comes back under its name has another. */
  readonly index: number;
  /** `veth`, `bridge`, …; absent: a device of hardware, `lo` and the like. */
  readonly kind?: string;
  /** The number of the bridge or switch that it is a port of. */
  readonly master?: number;
}

/** The devices of a network namespace. */
export interface DeviceFollower {
  /**
   * All devices, at once and after each change, until the signal aborts.
   *
   * @throws NativeCodeError when there is no compiled code for this machine; NetlinkError when the kernel refuses
   */
  follow(signal: AbortSignal): AsyncIterable<readonly NetworkDevice[]>;
}

/** How rtnetlink is reached, and the time. */
export interface DeviceFollowerOptions {
  /** For what the kernel reports. */
  readonly listen: OpenListening;
  /** For listings. */
  readonly open: OpenNetlink;
  /** Between two looks whether something was reported. */
  readonly timers: Timers;
}

/** Milliseconds between two looks whether something was told: a system call each. */
const PAUSE_MS = 250;

/** Follows the devices of the network namespace that the sockets are opened in. */
export function createDeviceFollower({ listen, open, timers }: DeviceFollowerOptions): DeviceFollower {
  return {
    async *follow(signal) {
      const socket = await listen(GROUPS.links);
      const room = Buffer.alloc(LONGEST_TOLD);
      try {
        socket.join();
        let devices = await listDevices(open);
        yield [...devices.values()];
        while (!signal.aborted) {
          let changed = false;
          for (let told = receiveOrLost(socket, room); told !== undefined; told = receiveOrLost(socket, room)) {
            if (told === "lost") devices = await listDevices(open);
            if (told === "lost" || takeChanges(told, devices)) changed = true;
          }
          if (changed) yield [...devices.values()];
          await sleep(timers, PAUSE_MS, signal);
        }
      } finally {
        socket.close();
      }
    },
  };
}

async function listDevices(open: OpenNetlink): Promise<Map<number, NetworkDevice>> {
  const socket = await open();
  try {
    const devices = await list(socket, encodeDeviceDump(), "reading devices", (bytes, message) => [
      deviceOf(bytes, message),
    ]);
    return new Map(devices.map((device) => [device.index, device]));
  } finally {
    await socket.close();
  }
}

/** @returns whether a device came, went or became another one: most messages are about counters and states */
function takeChanges(bytes: Buffer, devices: Map<number, NetworkDevice>): boolean {
  let changed = false;
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind !== "data" || !isAboutDevice(bytes, reply.attributes)) continue;
    const device = deviceOf(bytes, reply.attributes);
    const known = devices.get(device.index);
    if (reply.message === TYPES.deleteLink) changed = devices.delete(device.index) || changed;
    else if (reply.message === TYPES.newLink) {
      devices.set(device.index, device);
      changed ||= known?.name !== device.name || known.kind !== device.kind || known.master !== device.master;
    }
  }
  return changed;
}

function deviceOf(bytes: Buffer, message: { readonly start: number; readonly end: number }): NetworkDevice {
  const [kind, master] = [deviceKindIn(bytes, message), deviceMasterIn(bytes, message)];
  return {
    name: deviceIn(bytes, message).name,
    index: indexIn(bytes, message),
    ...(kind !== undefined && { kind }),
    ...(master !== undefined && { master }),
  };
}
