import { UsageError } from "../frame/errors.ts";

/** The last address but one of a CIDR, which stands for any pod: pods are numbered from below. */
export function addressIn(cidr: string): string {
  const [network = "", length = ""] = cidr.split("/");
  const words = network.includes(":") ? ipv6Words(network) : network.split(".").map(Number);
  const [bits, radix] = network.includes(":") ? [16, 16] : [8, 10];
  const prefix = Number(length);
  if (length === "" || words.some(Number.isNaN) || prefix > words.length * bits)
    throw new UsageError(`--cluster-cidr=${cidr}: must be a CIDR`);
  const filled = words.map((word, at) => word | (((1 << bits) - 1) >> Math.min(bits, Math.max(0, prefix - bits * at))));
  const last = filled.length - 1;
  if (words.length * bits - prefix > 1) filled[last] = (filled[last] ?? 0) - 1;
  return filled.map((word) => word.toString(radix)).join(bits === 16 ? ":" : ".");
}

function ipv6Words(network: string): number[] {
  const [head = "", tail = ""] = network.split("::");
  const words = (text: string) => (text === "" ? [] : text.split(":").map((word) => Number.parseInt(word, 16)));
  const [before, after] = [words(head), words(tail)];
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}
