import type { FastPathSettings } from "../mode-settings.ts";
import type { Report } from "../report.ts";
import type { ConfigInput } from "../resolve/input.ts";

const DEVICES = "nftables.fastPath.devices";

/** IFNAMSIZ without its zero byte. */
const LONGEST = 15;

/** @returns undefined: no connection bypasses rules */
export function resolveFastPath({ fairlead }: ConfigInput, report: Report): FastPathSettings | undefined {
  const { fastPath } = fairlead.nftables;
  if (fastPath === undefined) return undefined;
  if (fastPath.devices === "auto") return { devices: "auto" };
  const devices = [...new Set(fastPath.devices)];
  if (devices.length === 0) report.error(DEVICES, "must name at least one device, such as eth0 or cali*, or be auto");
  for (const device of devices) {
    if (device.length > LONGEST || !/^[^\s/:"]+$/.test(device) || device === "." || device === "..") {
      report.error(
        DEVICES,
        `${JSON.stringify(device)} must be a device name of at most ${LONGEST} characters, such as eth0 or cali*`,
      );
    } else if (device === "lo") report.error(DEVICES, "lo must not be among them: its packets are not forwarded");
  }
  return { devices };
}
