import { release } from "node:os";

/** The version of the running kernel. */
export interface KernelVersion {
  /** `6` of 6.1.0. */
  readonly major: number;
  /** `1` of 6.1.0. */
  readonly minor: number;
  /** `6.1.0-18-amd64` */
  readonly release: string;
}

/** The running kernel's version; 0.0 where its release says none. */
export function kernelVersion(of: string = release()): KernelVersion {
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(of) ?? [];
  return { major: Number(major), minor: Number(minor), release: of };
}

/** Whether a version is this one or a later one. */
export function isAtLeast(version: KernelVersion, major: number, minor: number): boolean {
  return version.major === major ? version.minor >= minor : version.major > major;
}
