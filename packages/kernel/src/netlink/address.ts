import ipaddr from "ipaddr.js";

/** An address of four or sixteen bytes, as the kernel's tools print it. */
export function addressText(bytes: Uint8Array): string {
  return bytes.length === 4 ? bytes.join(".") : new ipaddr.IPv6([...bytes]).toRFC5952String();
}

/** @throws Error when it is no address */
export function addressBytes(text: string): Buffer {
  return Buffer.from(ipaddr.parse(text).toByteArray());
}
