import type { ServiceDeviceChange } from "./addresses.ts";

/** The device that ipvs mode binds the services' addresses to. */
export const IPVS_DEVICE = "kube-ipvs0";

/** What is told of a device or of an address. */
export interface AddressChange {
  readonly device: string;
  readonly gone: boolean;
  /** Absent: it is about the device itself. */
  readonly address?: string;
}

/** An address of another device than kube-ipvs0. */
export function isNodeChange({ device, address }: AddressChange): boolean {
  return device !== IPVS_DEVICE && address !== undefined;
}

export function serviceDeviceChange({ device, ...change }: AddressChange): ServiceDeviceChange | undefined {
  return device === IPVS_DEVICE ? change : undefined;
}
