/** Debian's kernels for virtual machines, by their version: packages that name the newest one. */
export const KERNELS = { "6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64" } as const;
export type KernelVersion = keyof typeof KERNELS;
