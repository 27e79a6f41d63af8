/** Whether it stands for every address of the host: `0.0.0.0`, `::`. Takes canonical text. */
export function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

/** Whether it leads back to the host: 127.0.0.0/8, `::1`. Takes canonical text, of an address or CIDR. */
export function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1" || address === "::1/128";
}
